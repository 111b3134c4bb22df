import type { Provider } from '../model/chain.ts';
import type { Endpoint } from '../model/request.ts';

// What each API publishes, by the types of its vendor's own client; a client sends `stream_options` besides to Groq and Mistral, which take it.

/** openai 2.54.0 for Python, `types/chat/completion_create_params.py`. */
const chat = [
  ...['messages', 'model', 'modalities', 'verbosity', 'reasoning_effort', 'max_completion_tokens', 'max_tokens', 'frequency_penalty'],
  ...['presence_penalty', 'web_search_options', 'top_logprobs', 'logprobs', 'logit_bias', 'response_format', 'audio', 'store', 'stream'],
  ...['stream_options', 'stop', 'n', 'prediction', 'seed', 'tools', 'tool_choice', 'parallel_tool_calls', 'functions', 'function_call'],
  ...['user', 'safety_identifier', 'prompt_cache_key', 'prompt_cache_retention', 'prompt_cache_options', 'metadata', 'moderation'],
  ...['temperature', 'top_p', 'service_tier'],
];
/** openai 2.54.0 for Python, `types/responses/response_create_params.py`. */
const responses = [
  ...['background', 'context_management', 'conversation', 'include', 'input', 'instructions', 'max_output_tokens', 'max_tool_calls'],
  ...['metadata', 'model', 'parallel_tool_calls', 'previous_response_id', 'prompt', 'prompt_cache_key', 'prompt_cache_retention'],
  ...['reasoning', 'safety_identifier', 'service_tier', 'store', 'stream', 'stream_options', 'temperature', 'text', 'tool_choice'],
  ...['tools', 'top_logprobs', 'top_p', 'truncation', 'user', 'moderation', 'prompt_cache_options'],
];
/** @anthropic-ai/sdk 0.122.0, `resources/messages/messages.d.ts`, and `resources/beta/messages/messages.d.ts` without `betas`, which is a header. */
const messages = [
  ...['model', 'max_tokens', 'messages', 'system', 'metadata', 'stop_sequences', 'stream', 'temperature', 'top_p', 'top_k', 'tools'],
  ...['tool_choice', 'thinking', 'service_tier', 'container', 'context_management', 'mcp_servers', 'output_config', 'output_format'],
  ...['cache_control', 'inference_geo', 'speed', 'user_profile_id', 'diagnostics', 'fallbacks', 'fallback_credit_token'],
];
/** groq 1.7.0 for Python, `types/chat/completion_create_params.py`. */
const groq = [
  ...['citation_options', 'compound_custom', 'disable_tool_validation', 'documents', 'exclude_domains', 'include_domains'],
  ...['include_reasoning', 'reasoning_format', 'search_settings', 'frequency_penalty', 'function_call', 'functions', 'logit_bias'],
  ...['logprobs', 'max_completion_tokens', 'max_tokens', 'messages', 'metadata', 'model', 'n', 'parallel_tool_calls', 'presence_penalty'],
  ...['reasoning_effort', 'response_format', 'seed', 'service_tier', 'stop', 'store', 'stream', 'stream_options', 'temperature'],
  ...['tool_choice', 'tools', 'top_logprobs', 'top_p', 'user'],
];
/** mistralai 3.7.0 for Python, `client/models/chatcompletionrequest.py`. */
const mistral = [
  ...['model', 'messages', 'temperature', 'top_p', 'max_tokens', 'stream', 'stream_options', 'stop', 'random_seed', 'metadata'],
  ...['response_format', 'tools', 'tool_choice', 'presence_penalty', 'frequency_penalty', 'n', 'prediction', 'parallel_tool_calls'],
  ...['prompt_mode', 'reasoning_effort', 'safe_prompt', 'guardrails', 'prompt_cache_key', 'service_tier', 'min_tokens', 'top_k'],
  ...['repetition_penalty', 'logprobs', 'top_logprobs', 'prompt_logprobs', 'top_prompt_logprobs'],
];

/** A refusal of a request: the field, the status and the body. */
export interface Refusal {
  readonly field: string;
  readonly status: number;
  readonly body: unknown;
}

type Refuse = (field: string) => Omit<Refusal, 'field'>;

const openaiError = (message: string, param: string, code: string) => ({
  status: 400,
  body: { error: { message, type: 'invalid_request_error', param, code } },
});
const byOpenai: Refuse = (field) => openaiError(`Unknown parameter: '${field}'.`, field, 'unknown_parameter');

/** The published parameters of a kind at an API, and how it refuses others. */
interface Published {
  readonly params: ReadonlySet<string>;
  readonly refuse: Refuse;
}

/** By kind and API. Kinds that are not listed, or ignore what they do not know, refuse nothing. */
const published: Readonly<Record<string, Partial<Record<Endpoint, Published>>>> = {
  openai: {
    chat: { params: new Set(chat), refuse: byOpenai },
    responses: { params: new Set(responses), refuse: byOpenai },
  },
  anthropic: {
    messages: {
      params: new Set(messages),
      refuse: (field) => ({
        status: 400,
        body: { type: 'error', error: { type: 'invalid_request_error', message: `${field}: Extra inputs are not permitted` } },
      }),
    },
  },
  mistral: {
    chat: {
      params: new Set(mistral),
      refuse: (field) => ({
        status: 422,
        body: { detail: [{ type: 'extra_forbidden', loc: ['body', field], msg: 'Extra inputs are not permitted', input: null }] },
      }),
    },
  },
  groq: {
    chat: {
      params: new Set(groq),
      refuse: (field) => ({
        status: 400,
        body: { error: { message: `property '${field}' is unsupported`, type: 'invalid_request_error' } },
      }),
    },
  },
};

/** Models of OpenAI that refuse the old name of the token limit. */
const reasoningModel = /^(?:o\d|gpt-5)/;

/**
 * How a provider refuses a body; undefined if it takes it. Only a kind at its own address is known to do so.
 * @param endpoint the API at which the body arrived
 */
export function refusalOf(
  { provider: kind, api_base }: Pick<Provider, 'provider' | 'api_base'>,
  endpoint: Endpoint,
  body: Readonly<Record<string, unknown>>,
): Refusal | undefined {
  if (kind === null || api_base !== null) return undefined;
  const known = Object.hasOwn(published, kind) ? published[kind]![endpoint] : undefined;
  const field = known && Object.keys(body).find((name) => !known.params.has(name));
  if (field !== undefined) return { field, ...known!.refuse(field) };
  if (kind === 'openai' && endpoint === 'chat' && body.max_tokens !== undefined && reasoningModel.test(String(body.model)))
    return {
      field: 'max_tokens',
      ...openaiError(
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        'max_tokens',
        'unsupported_parameter',
      ),
    };
  if (kind === 'deepseek' && hasImage(body))
    return {
      field: 'messages',
      ...openaiError(
        'Failed to deserialize the JSON body into the target type: messages[0]: unknown variant `image_url`, expected `text`',
        'messages',
        'invalid_request_error',
      ),
    };
  return undefined;
}

const hasImage = (body: object): boolean => /"type":\s*"image_url"/.test(JSON.stringify(body));
