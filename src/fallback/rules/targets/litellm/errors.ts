import type { Condition } from '../../../model/chain.ts';
import { type FailureKind, ofStream } from '../../conditions.ts';
import { retryNames, type Special, specialOf } from './names.ts';

// How LiteLLM reads the failures of each kind of provider, as measured with versions 1.106.2 and 1.110.2, and with 1.106.2 alone
// of the kinds of `measuredOnce`. It differs from the documentation in places.

/** What LiteLLM makes of a failure. */
export interface ErrorClass {
  /** Its names in a retry policy, the most specific first; without one it has only `DefaultRetries`. */
  readonly names: readonly string[];
  /** Whether it is retried without a policy. */
  readonly isRetried: boolean;
  /** The status of the error, which may not be that of the provider. */
  readonly status: number;
  /** Whether LiteLLM passes it on to the caller, without a retry or a fallback. */
  readonly isPassedOn?: boolean;
  /** Whether LiteLLM goes to the fallbacks without a retry, because it has begun to read the answer. */
  readonly hasBegun?: boolean;
  /** Whether fallbacks of their own are for it. */
  readonly special?: Special;
}

/** Kinds that LiteLLM calls by clients of its own, which read statuses otherwise than OpenAI's. */
const ownClients = ['anthropic', 'gemini', 'vertex_ai', 'bedrock', 'cohere', 'ollama', 'ollama_chat', 'databricks'];

/** Kinds that LiteLLM calls by OpenAI's client. */
const openaiClient = ['openai', 'perplexity', 'cerebras', 'deepinfra', 'nvidia', 'sambanova', 'github', 'lm_studio'];

/** Kinds whose errors are like those of OpenAI's client in all that is not named below. */
const likeOpenai = [
  ...openaiClient,
  ...['azure', 'azure_ai', 'mistral', 'groq', 'deepseek', 'together', 'fireworks', 'openrouter', 'xai', 'hosted_vllm'],
];

/** The kinds whose errors were measured; others are taken for OpenAI's. */
export const measuredKinds: ReadonlySet<string> = new Set([...ownClients, ...likeOpenai]);

/** Kinds whose failures, or calls that LiteLLM repeats, were measured with version 1.106.2 alone. */
export const measuredOnce: ReadonlySet<string> = new Set(['bedrock', 'vertex_ai', 'watsonx', 'sagemaker', 'sagemaker_chat']);

/** Whether LiteLLM, with `drop_params`, calls a provider a second time on status 422, and then ends with an error of its own. */
export const isLostOn422 = (kind: string): boolean => openaiClient.includes(kind);

const serverClass: ErrorClass = { names: ['InternalServerErrorRetries'], isRetried: true, status: 500 };
const unnamed: ErrorClass = { names: [], isRetried: true, status: 500 };
/** A stream that ends early, after content was sent. */
const passedOn: ErrorClass = { names: [], isRetried: false, status: 200, isPassedOn: true };
/** A stream without content in time. */
const late: ErrorClass = { names: [], isRetried: false, status: 408, hasBegun: true };
const badRequest: ErrorClass = { names: ['BadRequestErrorRetries'], isRetried: false, status: 400 };

/** The class of an answer that can't be used, by kind, if it is not the class of a failed server. */
const unusable = byKinds([
  [['azure', 'azure_ai', 'anthropic', 'cohere', 'ollama', 'ollama_chat', 'mistral', 'groq', 'databricks'], unnamed],
  [['gemini', 'vertex_ai', 'bedrock'], { ...badRequest, status: 422 }],
  [['deepseek', 'together', 'fireworks', 'openrouter', 'xai', 'hosted_vllm'], { names: [], isRetried: false, status: 200 }],
]);

/** The class of a broken connection, by kind, if it is not the class of a failed server. */
const broken = byKinds([[['azure', 'gemini', 'vertex_ai', 'bedrock', 'ollama', 'ollama_chat', 'openrouter'], unnamed]]);

/**
 * The class of a status, by kind, if it is not the class that OpenAI's client gives it. 403 and 409 have no name in a retry policy, so that
 * `DefaultRetries` counts, else `num_retries`: LiteLLM raises APIError for them, or PermissionDeniedError for 403 of a client of its own,
 * which it retries only in a group of several models. 409 of such a client is a BadRequestError, and retried all the same.
 */
const byStatus: Readonly<Record<number, ReadonlyMap<string, ErrorClass>>> = {
  403: byKinds([[ownClients, { names: [], isRetried: false, status: 403 }]]),
  500: byKinds([
    [['azure', 'openrouter'], unnamed],
    [['bedrock'], { names: ['ServiceUnavailableErrorRetries'], isRetried: true, status: 503 }],
  ]),
  529: byKinds([[['anthropic'], serverClass]]),
};

/** Kinds of which LiteLLM does not notice that a prompt is too long, or that a filter refused it. */
const blind: Readonly<Record<Special, ReadonlySet<string>>> = {
  context: new Set(['openrouter', 'ollama', 'ollama_chat']),
  content: new Set(['openrouter', 'ollama', 'ollama_chat', 'gemini', 'vertex_ai', 'bedrock', 'cohere', 'databricks']),
};

function byKinds(entries: readonly (readonly [readonly string[], ErrorClass])[]): ReadonlyMap<string, ErrorClass> {
  return new Map(entries.flatMap(([kinds, error]) => kinds.map((kind) => [kind, error] as const)));
}

/** The names of statuses in a retry policy. */
const nameOfStatus: Readonly<Record<number, string>> = {
  400: 'BadRequestErrorRetries',
  401: 'AuthenticationErrorRetries',
  404: 'NotFoundErrorRetries',
  408: 'TimeoutErrorRetries',
  422: 'BadRequestErrorRetries',
  429: 'RateLimitErrorRetries',
  500: 'InternalServerErrorRetries',
  503: 'ServiceUnavailableErrorRetries',
  504: 'TimeoutErrorRetries',
};

/** For each condition that LiteLLM recognizes otherwise than by a status: the error class for each kind of provider, if it is not the class of a failed server. Null for all other conditions. */
const classesOf: Readonly<Record<Condition, ReadonlyMap<string, ErrorClass> | null>> = {
  rate_limit: null,
  timeout: null,
  first_token_timeout: null,
  server_error: null,
  connection_error: broken,
  interrupted: null,
  auth_error: null,
  quota_exceeded: null,
  model_not_found: null,
  context_length: null,
  content_filter: null,
  unsupported_request: null,
  invalid_request: null,
  // A cut answer can't be parsed.
  invalid_response: unusable,
};

/** What LiteLLM makes of a failure of a provider of this kind. */
export function classOf({ condition, status_code }: FailureKind, kind: string): ErrorClass {
  if (condition === ofStream.broken) return passedOn;
  if (condition === ofStream.late) return late;
  const classes = classesOf[condition];
  if (classes !== null) return classes.get(kind) ?? serverClass;
  // Without an answer in time, the error has the status of a time-out.
  const status = status_code ?? 408;
  const special = status === 400 ? specialOf[condition] : null;
  if (special !== null && !blind[special].has(kind))
    return { ...badRequest, special, names: [...retryNames[condition], ...badRequest.names] };
  const odd = byStatus[status]?.get(kind);
  if (odd !== undefined) return odd;
  const isRetried = status >= 500 || [403, 408, 409, 429].includes(status);
  const isRequest = ownClients.includes(kind) && status >= 400 && status < 500;
  const name = nameOfStatus[status] ?? (isRequest ? nameOfStatus[400] : undefined);
  return { names: name === undefined ? [] : [name], isRetried, status };
}

/** Whether a model is left out for a while after this error, so that the same call can't use it again. */
export const coolsDown = ({ status }: ErrorClass, isAlone: boolean) =>
  status === 401 || status === 404 || ((status === 402 || status === 429) && !isAlone);

/** Whether LiteLLM prefers other models of the group for the retries after this error. */
export const isSkipped = ({ status }: ErrorClass) => status >= 400 && status < 500 && ![408, 409, 429].includes(status);
