import type { Condition, Provider } from '../../model/chain.ts';
import { at, type Notes } from './target.ts';

/** How a kind of provider is called elsewhere, and where its keys and its API are by convention. */
export interface Kind {
  /** The environment variable that keeps its key by convention. */
  keyEnv: string;
  /** Its own API, with the version path; null where each customer has one of its own. */
  base: string | null;
  litellm: string | null;
  portkey: string | null;
  bifrost: string | null;
}

/** The kinds that other programs know by a name of their own. */
export const kinds: Readonly<Record<string, Kind>> = {
  openai: kind('OPENAI_API_KEY', 'https://api.openai.com/v1', 'openai', 'openai', 'openai'),
  anthropic: kind('ANTHROPIC_API_KEY', 'https://api.anthropic.com/v1', 'anthropic', 'anthropic', 'anthropic'),
  mistral: kind('MISTRAL_API_KEY', 'https://api.mistral.ai/v1', 'mistral', 'mistral-ai', 'mistral'),
  groq: kind('GROQ_API_KEY', 'https://api.groq.com/openai/v1', 'groq', 'groq', 'groq'),
  deepseek: kind('DEEPSEEK_API_KEY', 'https://api.deepseek.com/v1', 'deepseek', 'deepseek', null),
  together: kind('TOGETHER_API_KEY', 'https://api.together.xyz/v1', 'together_ai', 'together-ai', null),
  fireworks: kind('FIREWORKS_API_KEY', 'https://api.fireworks.ai/inference/v1', 'fireworks_ai', 'fireworks-ai', null),
  openrouter: kind('OPENROUTER_API_KEY', 'https://openrouter.ai/api/v1', 'openrouter', 'openrouter', 'openrouter'),
  perplexity: kind('PERPLEXITY_API_KEY', 'https://api.perplexity.ai', 'perplexity', 'perplexity-ai', 'perplexity'),
  xai: kind('XAI_API_KEY', 'https://api.x.ai/v1', 'xai', 'x-ai', 'xai'),
  cerebras: kind('CEREBRAS_API_KEY', 'https://api.cerebras.ai/v1', 'cerebras', 'cerebras', 'cerebras'),
};

function kind(keyEnv: string, base: string, litellm: string | null, portkey: string | null, bifrost: string | null): Kind {
  return { keyEnv, base, litellm, portkey, bifrost };
}

/** The kind that another program calls so. */
export function kindNamed(target: 'litellm' | 'portkey' | 'bifrost', name: string): string | null {
  return Object.keys(kinds).find((known) => kinds[known]![target] === name) ?? null;
}

/** The model's id as it is sent: the prefix of a known kind says who serves it and stays behind. */
export function sentModel({ model_id, provider }: Provider): string {
  return provider !== null && model_id.startsWith(`${provider}/`) && provider in kinds ? model_id.slice(provider.length + 1) : model_id;
}

/** The kind under which a target is told of a provider: its own; `openai` for one without, or with one that the target doesn't know. */
export function kindFor(target: 'litellm' | 'portkey' | 'bifrost', provider: Provider, index: number, notes: Notes): string {
  const known = provider.provider === null ? null : (kinds[provider.provider]?.[target] ?? null);
  if (known !== null) return known;
  noteKind(provider, index, notes);
  return kinds.openai![target]!;
}

/** Says that a provider goes out as one with the OpenAI API because its kind isn't known. */
export function noteKind({ name, provider }: Provider, index: number, notes: Notes): void {
  const why = provider === null ? 'has no kind' : `is of kind ${provider}, which the target does not know`;
  notes.loss('provider_kind', at(index, 'provider'), `${name} ${why}: it goes out as one that speaks the OpenAI API.`);
}

/**
 * The name of the environment variable with a provider's key. Targets want one; where the chain names none, the one of
 * the kind by convention, with a warning.
 */
export function keyEnv(provider: Provider, index: number, slugged: string, notes: Notes): string {
  if (provider.api_key_env !== null) return provider.api_key_env;
  const ownHost = provider.api_base === null && provider.provider !== null ? kinds[provider.provider] : undefined;
  const assumed = ownHost?.keyEnv ?? `${slugged.toUpperCase().replaceAll('-', '_').replace(/^(?=\d)/, '_')}_API_KEY`;
  notes.loss(
    'key_assumed',
    at(index, 'api_key_env'),
    `${provider.name} names no variable for its key; the target needs one, so ${assumed} is referred to.`,
  );
  return assumed;
}

/** The address of a provider's API with its version path. */
export function baseOf(provider: Provider): string {
  return provider.api_base ?? (provider.provider === null ? undefined : kinds[provider.provider]?.base) ?? kinds.openai!.base!;
}

/** Whether a provider speaks Anthropic's messages API; all others speak OpenAI's. */
export const speaksAnthropic = ({ provider }: Provider) => provider === 'anthropic';

/** The HTTP statuses that targets which decide by status are told of. */
export const knownStatuses: readonly number[] = [
  400, 401, 402, 403, 404, 405, 406, 408, 409, 410, 413, 415, 422, 424, 429, 500, 501, 502, 503, 504, 505, 520, 521, 522, 523, 524, 529,
];

/** The condition of a failure of which nothing but the HTTP status is known. */
export function conditionOfStatus(status: number): Condition {
  if (status === 401 || status === 403) return 'auth_error';
  if (status === 402) return 'quota_exceeded';
  if (status === 408 || status === 504) return 'timeout';
  if (status === 413) return 'context_length';
  if (status === 429) return 'rate_limit';
  if (status >= 500) return 'server_error';
  return status >= 400 ? 'invalid_request' : 'invalid_response';
}
