import type { Condition } from '../model/chain.ts';

/** An error body that a provider was seen to send, or publishes, for a condition. */
export interface ProviderError {
  /** The kinds that send it. */
  readonly kinds: readonly string[];
  readonly condition: Condition;
  readonly status: number;
  readonly body: unknown;
  /** What of its codes and its message is stable, if the status alone does not decide: part of a regular expression. */
  readonly says?: string;
  /** Where it is published or reported. */
  readonly source: string;
}

const openaiGuide = 'https://platform.openai.com/docs/guides/error-codes';
const anthropicGuide = 'https://docs.anthropic.com/en/api/errors';

/** OpenAI's form, which most providers send. */
export const openaiBody = (message: string, type: string | null, code: string | number | null = null) => ({
  error: { message, type, param: null, code },
});
const anthropicBody = (type: string, message: string) => ({ type: 'error', error: { type, message }, request_id: 'req_rehearsal' });
/** Errors of OpenAI's protocol. */
export const openaiErrors: readonly ProviderError[] = [
  {
    kinds: ['openai'],
    condition: 'rate_limit',
    status: 429,
    body: openaiBody('Rate limit reached for requests.', 'requests', 'rate_limit_exceeded'),
    source: openaiGuide,
  },
  {
    kinds: ['openai'],
    condition: 'quota_exceeded',
    status: 429,
    body: openaiBody(
      'You exceeded your current quota, please check your plan and billing details.',
      'insufficient_quota',
      'insufficient_quota',
    ),
    says: String.raw`\b(insufficient_quota|quota_exceeded|billing_hard_limit_reached|billing_not_active|insufficient_(balance|credits)|billing_error)\b`,
    source: openaiGuide,
  },
  {
    kinds: ['openai'],
    condition: 'auth_error',
    status: 401,
    body: openaiBody('Incorrect API key provided.', 'invalid_request_error', 'invalid_api_key'),
    source: openaiGuide,
  },
  {
    kinds: ['openai'],
    condition: 'context_length',
    status: 400,
    body: openaiBody(
      "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
      'invalid_request_error',
      'context_length_exceeded',
    ),
    says: String.raw`\b(context_length_exceeded|string_above_max_length|model_max_prompt_tokens_exceeded|request_too_large)\b|maximum context length|context window`,
    source: 'https://github.com/xtekky/gpt4free/issues/137',
  },
  {
    kinds: ['openai'],
    condition: 'context_length',
    status: 400,
    body: openaiBody(
      'Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 289650 tokens.',
      'invalid_request_error',
    ),
    says: 'input tokens exceed',
    source: 'https://github.com/cline/cline/issues/5474',
  },
  {
    kinds: ['openai'],
    condition: 'content_filter',
    status: 400,
    body: openaiBody(
      'Your request was rejected as a result of our safety system: content_policy_violation.',
      'invalid_request_error',
      'content_policy_violation',
    ),
    says: String.raw`\b(content_policy_violation|moderation_blocked)\b`,
    source: openaiGuide,
  },
  {
    kinds: ['openai'],
    condition: 'context_length',
    status: 413,
    body: openaiBody('Request too large.', 'invalid_request_error', 'request_too_large'),
    source: openaiGuide,
  },
  {
    kinds: ['openai'],
    condition: 'auth_error',
    status: 403,
    body: openaiBody('Country, region, or territory not supported.', 'invalid_request_error', 'unsupported_country_region_territory'),
    source: openaiGuide,
  },
  {
    kinds: ['openai'],
    condition: 'invalid_request',
    status: 400,
    body: openaiBody('Invalid value.', 'invalid_request_error', 'invalid_value'),
    source: openaiGuide,
  },
  {
    kinds: ['openai'],
    condition: 'timeout',
    status: 504,
    body: openaiBody('The request timed out.', 'server_error', 'timeout'),
    source: openaiGuide,
  },
  {
    kinds: ['openai'],
    condition: 'server_error',
    status: 500,
    body: openaiBody('The server had an error while processing your request.', 'server_error'),
    source: openaiGuide,
  },
];

/** Errors of Anthropic's protocol. */
export const anthropicErrors: readonly ProviderError[] = [
  {
    kinds: ['anthropic'],
    condition: 'rate_limit',
    status: 429,
    body: anthropicBody('rate_limit_error', "This request would exceed your organization's rate limit."),
    source: anthropicGuide,
  },
  {
    kinds: ['anthropic'],
    condition: 'quota_exceeded',
    status: 400,
    body: anthropicBody('invalid_request_error', 'Your credit balance is too low to access the Anthropic API.'),
    says: 'credit balance is too low',
    source: 'https://github.com/anthropics/claude-code/issues/66314',
  },
  {
    kinds: ['anthropic'],
    condition: 'quota_exceeded',
    status: 400,
    body: anthropicBody(
      'invalid_request_error',
      'You have reached your specified API usage limits. You will regain access on 2026-04-01 at 00:00 UTC.',
    ),
    says: 'API usage limits',
    source: 'https://github.com/anthropics/claude-code/issues/38035',
  },
  {
    kinds: ['anthropic'],
    condition: 'quota_exceeded',
    status: 402,
    body: anthropicBody('billing_error', 'There is an issue with your billing or payment information.'),
    source: anthropicGuide,
  },
  {
    kinds: ['anthropic'],
    condition: 'auth_error',
    status: 401,
    body: anthropicBody('authentication_error', 'invalid x-api-key'),
    says: String.raw`\bauthentication_error\b`,
    source: anthropicGuide,
  },
  {
    kinds: ['anthropic'],
    condition: 'auth_error',
    status: 403,
    body: anthropicBody('permission_error', 'Your API key does not have permission to use the specified resource.'),
    source: anthropicGuide,
  },
  {
    kinds: ['anthropic'],
    condition: 'context_length',
    status: 400,
    body: anthropicBody('invalid_request_error', 'prompt is too long: 210000 tokens > 200000 maximum'),
    says: 'prompt is too long|exceed context limit',
    source: 'https://github.com/stackblitz-labs/bolt.diy/issues/401',
  },
  {
    kinds: ['anthropic'],
    condition: 'context_length',
    status: 413,
    body: anthropicBody('request_too_large', 'Request exceeds the maximum size'),
    source: anthropicGuide,
  },
  {
    kinds: ['anthropic'],
    condition: 'content_filter',
    status: 400,
    body: anthropicBody('invalid_request_error', 'Output blocked by content filtering policy'),
    says: 'content filtering policy',
    source: 'https://github.com/anthropics/claude-code/issues/43487',
  },
  {
    kinds: ['anthropic'],
    condition: 'invalid_request',
    status: 404,
    body: anthropicBody('not_found_error', 'The requested resource could not be found.'),
    source: anthropicGuide,
  },
  {
    kinds: ['anthropic'],
    condition: 'invalid_request',
    status: 400,
    body: anthropicBody('invalid_request_error', 'The request is invalid.'),
    source: anthropicGuide,
  },
  {
    kinds: ['anthropic'],
    condition: 'timeout',
    status: 504,
    body: anthropicBody('timeout_error', 'The request timed out.'),
    source: anthropicGuide,
  },
  {
    kinds: ['anthropic'],
    condition: 'server_error',
    status: 500,
    body: anthropicBody('api_error', 'Internal server error'),
    source: anthropicGuide,
  },
  {
    kinds: ['anthropic'],
    condition: 'server_error',
    status: 529,
    body: anthropicBody('overloaded_error', 'Overloaded'),
    source: anthropicGuide,
  },
];
