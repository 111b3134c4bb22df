import type { Provider } from '../model/chain.ts';
import type { Endpoint } from '../model/request.ts';

/** A chat API: OpenAI's chat completions, which most providers support, or Anthropic's messages. */
export type Protocol = 'openai' | 'anthropic';

/** A known kind of provider. */
export interface Kind {
  /** The base URL of its API, with the version path. */
  readonly api_base: string;
  /** The usual environment variable of its key; null if it needs none. */
  readonly api_key_env: string | null;
  readonly protocol: Protocol;
}

const kind = (api_base: string, api_key_env: string | null, protocol: Protocol = 'openai'): Kind => ({ api_base, api_key_env, protocol });

/** The known kinds by name. Other kinds need an `api_base` and are assumed to support OpenAI's protocol. */
export const kinds: Readonly<Record<string, Kind>> = {
  openai: kind('https://api.openai.com/v1', 'OPENAI_API_KEY'),
  anthropic: kind('https://api.anthropic.com/v1', 'ANTHROPIC_API_KEY', 'anthropic'),
  mistral: kind('https://api.mistral.ai/v1', 'MISTRAL_API_KEY'),
  groq: kind('https://api.groq.com/openai/v1', 'GROQ_API_KEY'),
  gemini: kind('https://generativelanguage.googleapis.com/v1beta/openai', 'GEMINI_API_KEY'),
  deepseek: kind('https://api.deepseek.com/v1', 'DEEPSEEK_API_KEY'),
  together: kind('https://api.together.xyz/v1', 'TOGETHER_API_KEY'),
  fireworks: kind('https://api.fireworks.ai/inference/v1', 'FIREWORKS_API_KEY'),
  openrouter: kind('https://openrouter.ai/api/v1', 'OPENROUTER_API_KEY'),
  xai: kind('https://api.x.ai/v1', 'XAI_API_KEY'),
  cohere: kind('https://api.cohere.ai/compatibility/v1', 'COHERE_API_KEY'),
  perplexity: kind('https://api.perplexity.ai', 'PERPLEXITY_API_KEY'),
  cerebras: kind('https://api.cerebras.ai/v1', 'CEREBRAS_API_KEY'),
  deepinfra: kind('https://api.deepinfra.com/v1/openai', 'DEEPINFRA_API_KEY'),
  nvidia: kind('https://integrate.api.nvidia.com/v1', 'NVIDIA_API_KEY'),
  ollama: kind('http://127.0.0.1:11434/v1', null),
};

/** A kind with a protocol of its own, which is simulated and exported, but never called. */
interface ForeignKind {
  /** The usual variable of its key; null if its credentials come from the environment of the target. */
  readonly api_key_env: string | null;
  /** The names of its parameters. */
  readonly params: readonly string[];
}

const aws = [
  ...['aws_region_name', 'aws_profile_name', 'aws_role_name', 'aws_session_name', 'aws_bedrock_runtime_endpoint'],
  ...['aws_access_key_id', 'aws_secret_access_key', 'aws_session_token'],
];
const foreignKinds: Readonly<Record<string, ForeignKind>> = {
  azure: { api_key_env: 'AZURE_API_KEY', params: ['api_version', 'tenant_id', 'client_id', 'client_secret', 'azure_ad_token'] },
  azure_ai: { api_key_env: 'AZURE_AI_API_KEY', params: ['api_version'] },
  bedrock: { api_key_env: null, params: aws },
  sagemaker: { api_key_env: null, params: aws },
  sagemaker_chat: { api_key_env: null, params: aws },
  vertex_ai: { api_key_env: null, params: ['vertex_project', 'vertex_location', 'vertex_credentials'] },
  watsonx: { api_key_env: 'WATSONX_API_KEY', params: ['project_id', 'space_id'] },
};

/** The foreign kind with this name; undefined for any other. */
export const foreignKind = (name: string | null): ForeignKind | undefined =>
  name !== null && Object.hasOwn(foreignKinds, name) ? foreignKinds[name] : undefined;

/** The known kind with this name; undefined for an unknown kind or null. */
export function knownKind(name: string | null): Kind | undefined {
  return name !== null && Object.hasOwn(kinds, name) ? kinds[name] : undefined;
}

/** Whether a kind is one of Azure, which is called by OpenAI's chat completions at addresses of its own form. */
export const isAzure = (kind: string | null): boolean => kind === 'azure' || kind === 'azure_ai';

/** The kind in a `kind/model` id, if it is known or foreign. */
export function kindOfModel(modelId: string): string | null {
  const slash = modelId.indexOf('/');
  const prefix = modelId.slice(0, Math.max(slash, 0));
  const isKind = knownKind(prefix) !== undefined || foreignKind(prefix) !== undefined;
  return slash < modelId.length - 1 && isKind ? prefix : null;
}

/** The usual environment variable of the key for a kind; null if it has none, or if a known kind has another address. */
export const usualKey = (kind: string | null, api_base: string | null): string | null =>
  foreignKind(kind)?.api_key_env ?? (api_base === null ? knownKind(kind)?.api_key_env : null) ?? null;

type Addressed = Pick<Provider, 'provider' | 'model_id' | 'api_base'> & Partial<Pick<Provider, 'params'>>;

/** The model's name as sent: without the prefix if that is the provider's kind. */
export function modelName({ provider, model_id }: Addressed): string {
  return provider !== null && kindOfModel(model_id) === provider ? model_id.slice(provider.length + 1) : model_id;
}

/** The base URL of the provider's API, else of its kind, without a trailing slash; null if neither is known, or a variable has it. */
export function apiBase({ provider, api_base, params }: Addressed): string | null {
  if (api_base === null && params?.api_base !== undefined) return null;
  return (api_base ?? knownKind(provider)?.api_base ?? null)?.replace(/\/+$/, '') ?? null;
}

/** The provider's protocol. */
export function protocolOf({ provider }: Addressed): Protocol {
  return knownKind(provider)?.protocol ?? 'openai';
}

/** Kinds with a protocol of their own besides OpenAI's, by which other programs may call them. */
export const twoProtocolKinds: ReadonlySet<string> = new Set(['gemini', 'cohere', 'ollama']);

/** The kind whose errors a fake provider sends: its own, or OpenAI's if programs call it by a protocol that fake providers don't have. */
export const playedKind = ({ provider }: Pick<Provider, 'provider'>): string =>
  provider === null || twoProtocolKinds.has(provider) ? 'openai' : provider;

/** The API by which a provider is called. */
export const endpointOf = (provider: Addressed): Endpoint => (protocolOf(provider) === 'anthropic' ? 'messages' : 'chat');

const paths: Readonly<Record<Endpoint, string>> = { chat: 'chat/completions', messages: 'messages', responses: 'responses' };

/** The URL of a provider's calls by an API, its own if none is given; null if it has none. */
export function callAddress(provider: Addressed, endpoint = endpointOf(provider)): string | null {
  const base = apiBase(provider);
  return base === null ? null : `${base}/${paths[endpoint]}`;
}
