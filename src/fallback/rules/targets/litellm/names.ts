import { type Condition, conditions } from '../../../model/chain.ts';
import { litellmKinds } from '../../kind-lists.ts';
import { twoProtocolKinds } from '../../kinds.ts';
import { listed } from '../../wording.ts';
import type { KindNames } from '../kind-names.ts';

/** LiteLLM's names of kinds of providers. */
export const kindNames: KindNames = {
  known: litellmKinds,
  aliases: { together: 'together_ai', fireworks: 'fireworks_ai', nvidia: 'nvidia_nim' },
};

/** The name of a model group. One with an asterisk would be a pattern. */
export const groupName = (name: string): string => name.replaceAll('*', '-');

/** Kinds that LiteLLM calls by their own protocol, and a chain by OpenAI's; with an address of their own they are `openai`. */
export const nativeKinds = twoProtocolKinds;

/** Whether a kind is one of Ollama, whose address has no version in LiteLLM. */
export const isOllama = (kind: string | null): boolean => kind === 'ollama' || kind === 'ollama_chat';

/**
 * Whether LiteLLM calls a kind at an address of its own by OpenAI's protocol. A kind with two protocols is called by OpenAI's if the
 * address has the path of OpenAI's API. Gemini's own API has other paths than `/v1`, which servers with OpenAI's protocol have.
 */
export const isOpenaiAt = (kind: string, base: string): boolean =>
  nativeKinds.has(kind) && !(isOllama(kind) && base.endsWith('/v1')) && !(kind === 'gemini' && !/\/(openai|v1)$/.test(base));

/** The settings of LiteLLM's retry policy for a condition; none for one that it does not distinguish. */
export const retryNames: Readonly<Record<Condition, readonly string[]>> = {
  rate_limit: ['RateLimitErrorRetries'],
  timeout: ['TimeoutErrorRetries'],
  first_token_timeout: [],
  server_error: ['InternalServerErrorRetries', 'ServiceUnavailableErrorRetries'],
  connection_error: [],
  interrupted: [],
  auth_error: ['AuthenticationErrorRetries'],
  quota_exceeded: [],
  model_not_found: ['NotFoundErrorRetries'],
  context_length: [],
  content_filter: ['ContentPolicyViolationErrorRetries'],
  unsupported_request: [],
  invalid_request: ['BadRequestErrorRetries'],
  invalid_response: [],
};

/** The failures with fallbacks of their own in LiteLLM, and the settings that have them. */
export const specialSettings = { context: 'context_window_fallbacks', content: 'content_policy_fallbacks' } as const;
export type Special = keyof typeof specialSettings;

/** The fallbacks of their own of conditions; null for those that have the general ones. */
export const specialOf: Readonly<Record<Condition, Special | null>> = {
  rate_limit: null,
  timeout: null,
  first_token_timeout: null,
  server_error: null,
  connection_error: null,
  interrupted: null,
  auth_error: null,
  quota_exceeded: null,
  model_not_found: null,
  context_length: 'context',
  content_filter: 'content',
  unsupported_request: null,
  invalid_request: null,
  invalid_response: null,
};

/** What LiteLLM's clients of some kinds of providers repeat by themselves, whatever a file says (version 1.106.2). */
export interface Repeats {
  readonly conditions: readonly Condition[];
  /** The calls for each call of the router. */
  readonly calls: number;
}

/** The clients that call again after a condition: LiteLLM's own, or OpenAI's, to which LiteLLM does not pass on that it should not. */
const repeatedBy: Readonly<Record<Condition, readonly ('own' | 'openai')[]>> = {
  rate_limit: ['openai'],
  timeout: ['openai'],
  first_token_timeout: [],
  server_error: ['openai'],
  connection_error: ['own', 'openai'],
  interrupted: [],
  auth_error: [],
  quota_exceeded: ['openai'],
  model_not_found: [],
  context_length: [],
  content_filter: [],
  unsupported_request: [],
  invalid_request: [],
  invalid_response: [],
};
const repeatsBy = (client: 'own' | 'openai', calls: number): Repeats => ({
  conditions: conditions.filter((condition) => repeatedBy[condition].includes(client)),
  calls,
});
const onceMore = repeatsBy('own', 2);
const twiceMore = repeatsBy('openai', 3);

const own = [
  ...['anthropic', 'mistral', 'groq', 'gemini', 'deepseek', 'together', 'fireworks', 'openrouter', 'xai', 'cohere', 'ollama'],
  ...['azure_ai', 'bedrock', 'vertex_ai', 'watsonx', 'sagemaker', 'sagemaker_chat'],
];
const repeating: ReadonlyMap<string | null, Repeats> = new Map([
  ...own.map((kind) => [kind, onceMore] as const),
  ['deepinfra', twiceMore],
  ['nvidia', twiceMore],
]);

/** What LiteLLM repeats by itself at a provider of this kind; undefined for nothing. */
export const repeatsOf = (kind: string | null): Repeats | undefined => repeating.get(kind);

/** The sentence about what is repeated at some providers, on conditions that it names. */
export const repeatsSentence = ({ conditions, calls }: Repeats, whose: string): string =>
  `On ${listed(conditions)} of ${whose}, LiteLLM makes each call ${calls} times by itself, whatever its retries are; the chain makes it once.`;

/** The settings of a retry policy. */
export const policyNames: readonly string[] = [...Object.values(retryNames).flat(), 'DefaultRetries'];

/** The kinds that LiteLLM infers from the name of a model without one (version 1.106.2). */
const inferred: readonly [RegExp, string][] = [
  [/^(ft:)?(gpt-|chatgpt-|o\d)/, 'openai'],
  [/^claude-/, 'anthropic'],
  [/^gemini-/, 'vertex_ai'],
  [/^([a-z-]+\.)?anthropic\.claude-/, 'bedrock'],
];

/** The kind that LiteLLM infers from the name of a model; undefined if it infers none. */
export const inferredKind = (model: string): string | undefined => inferred.find(([pattern]) => pattern.test(model))?.[1];
