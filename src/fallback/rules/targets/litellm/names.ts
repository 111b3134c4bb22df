import type { Condition } from '../../../model/chain.ts';
import { litellmKinds } from '../../kind-lists.ts';
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
export const nativeKinds: ReadonlySet<string> = new Set(['gemini', 'cohere', 'ollama']);

/** The conditions that LiteLLM's retry policy distinguishes, and its settings for each, in the order of their rules in a chain. */
export const retryNames: readonly (readonly [Condition, readonly string[]])[] = [
  ['rate_limit', ['RateLimitErrorRetries']],
  ['timeout', ['TimeoutErrorRetries']],
  ['auth_error', ['AuthenticationErrorRetries']],
  ['invalid_request', ['BadRequestErrorRetries', 'NotFoundErrorRetries']],
  ['content_filter', ['ContentPolicyViolationErrorRetries']],
  ['server_error', ['InternalServerErrorRetries', 'ServiceUnavailableErrorRetries']],
];

/** What LiteLLM's clients of some kinds of providers repeat by themselves, whatever a file says (version 1.106.2). */
export interface Repeats {
  readonly conditions: readonly Condition[];
  /** The calls for each call of the router. */
  readonly calls: number;
}

/** LiteLLM's own client tries a broken connection again. */
const onceMore: Repeats = { conditions: ['connection_error'], calls: 2 };
/** OpenAI's client, to which LiteLLM does not pass on that it should not retry. */
const twiceMore: Repeats = { conditions: ['rate_limit', 'quota_exceeded', 'timeout', 'server_error', 'connection_error'], calls: 3 };

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
export const policyNames: readonly string[] = [...retryNames.flatMap(([, names]) => names), 'DefaultRetries'];

/** The kinds that LiteLLM infers from the name of a model without one (version 1.106.2). */
const inferred: readonly [RegExp, string][] = [
  [/^(ft:)?(gpt-|chatgpt-|o\d)/, 'openai'],
  [/^claude-/, 'anthropic'],
  [/^gemini-/, 'vertex_ai'],
  [/^([a-z-]+\.)?anthropic\.claude-/, 'bedrock'],
];

/** The kind that LiteLLM infers from the name of a model; undefined if it infers none. */
export const inferredKind = (model: string): string | undefined => inferred.find(([pattern]) => pattern.test(model))?.[1];
