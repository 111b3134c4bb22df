import { openaiBody, type ProviderError } from './provider-error-bodies.ts';

const deepseekGuide = 'https://api-docs.deepseek.com/quick_start/error_codes';

const geminiBody = (code: number, message: string, status: string, reason?: string) => ({
  error: { code, message, status, ...(reason === undefined ? {} : { details: [{ reason, domain: 'googleapis.com' }] }) },
});
const mistralBody = (message: string, type: string, code: string | null = null) => ({ object: 'error', message, type, param: null, code });

/** Errors of other kinds that differ from OpenAI's in their status or their words. */
export const otherErrors: readonly ProviderError[] = [
  {
    kinds: ['gemini'],
    condition: 'auth_error',
    status: 400,
    body: geminiBody(400, 'API key not valid. Please pass a valid API key.', 'INVALID_ARGUMENT', 'API_KEY_INVALID'),
    says: String.raw`\bAPI_KEY_INVALID\b|API key (not valid|not found|expired)`,
    source: 'https://github.com/cequence-io/openai-scala-client/issues/109',
  },
  {
    kinds: ['gemini', 'vertex_ai'],
    condition: 'context_length',
    status: 400,
    body: geminiBody(400, 'The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).', 'INVALID_ARGUMENT'),
    says: 'token count .{0,20}exceeds the maximum number of tokens',
    source: 'https://github.com/google-gemini/gemini-cli/issues/6678',
  },
  {
    kinds: ['xai'],
    condition: 'auth_error',
    status: 400,
    body: {
      code: 'Client specified an invalid argument',
      error: 'Incorrect API key provided: sk***gA. You can obtain an API key from https://console.x.ai.',
    },
    says: 'Incorrect API key provided',
    source: 'https://github.com/continuedev/continue/issues/10778',
  },
  {
    kinds: ['xai'],
    condition: 'context_length',
    status: 400,
    body: {
      code: 'Client specified an invalid argument',
      error: "This model's maximum prompt length is 131072 but the request contains 136973 tokens.",
    },
    says: String.raw`maximum prompt length|\binput_too_large\b`,
    source: 'https://github.com/cline/cline/issues/3120',
  },
  {
    kinds: ['xai'],
    condition: 'quota_exceeded',
    status: 429,
    body: { error: 'Your team has either used all available credits or reached its monthly spending limit.' },
    says: 'used all available credits|monthly spending limit',
    source: 'https://github.com/continuedev/continue/issues/10373',
  },
  {
    kinds: ['xai'],
    condition: 'quota_exceeded',
    status: 403,
    body: { error: 'Your team has either used all available credits or reached its monthly spending limit.' },
    says: 'used all available credits|monthly spending limit',
    source: 'https://github.com/warpdotdev/warp/issues/14867',
  },
  {
    kinds: ['azure', 'azure_ai'],
    condition: 'content_filter',
    status: 400,
    body: {
      error: {
        message: "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
        type: null,
        param: 'prompt',
        code: 'content_filter',
        status: 400,
        innererror: { code: 'ResponsibleAIPolicyViolation' },
      },
    },
    says: String.raw`\b(content_filter|responsibleaipolicyviolation)\b`,
    source: 'https://github.com/openai/openai-dotnet/issues/55',
  },
  {
    kinds: ['mistral'],
    condition: 'auth_error',
    status: 401,
    body: { detail: 'Unauthorized' },
    source: 'https://github.com/diegosouzapw/OmniRoute/issues/7638',
  },
  {
    kinds: ['mistral'],
    condition: 'rate_limit',
    status: 429,
    body: mistralBody('Rate limit exceeded', 'rate_limited', '1300'),
    source: 'https://github.com/raycast/extensions/issues/31107',
  },
  {
    kinds: ['groq', 'cerebras'],
    condition: 'context_length',
    status: 400,
    body: openaiBody('Please reduce the length of the messages or completion.', 'invalid_request_error', 'context_length_exceeded'),
    says: 'reduce the length of the messages',
    source: 'https://github.com/OpenHands/OpenHands/issues/1902',
  },
  {
    kinds: ['groq'],
    condition: 'context_length',
    status: 413,
    body: openaiBody(
      'Request too large for model on tokens per minute (TPM): Limit 12000, Requested 14137.',
      'tokens',
      'rate_limit_exceeded',
    ),
    source: 'https://github.com/continuedev/continue/issues/10218',
  },
  {
    kinds: ['deepseek'],
    condition: 'quota_exceeded',
    status: 402,
    body: openaiBody('Insufficient Balance', 'unknown_error', 'invalid_request_error'),
    source: deepseekGuide,
  },
  {
    kinds: ['deepseek'],
    condition: 'context_length',
    status: 400,
    body: openaiBody(
      "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens.",
      'invalid_request_error',
      'invalid_request_error',
    ),
    source: 'https://github.com/evalstate/fast-agent/issues/621',
  },
  {
    kinds: ['openrouter'],
    condition: 'quota_exceeded',
    status: 402,
    body: { error: { message: 'Insufficient credits. Add more using https://openrouter.ai/settings/credits', code: 402 } },
    source: 'https://github.com/continuedev/continue/issues/10877',
  },
  {
    kinds: ['cohere'],
    condition: 'context_length',
    status: 400,
    body: { message: 'too many tokens: total number of tokens (prompt and prediction) cannot exceed 2048 - received 6354.' },
    says: 'too many tokens',
    source: 'https://github.com/cohere-ai/sandbox-topically/issues/4',
  },
  {
    kinds: ['cohere'],
    condition: 'quota_exceeded',
    status: 402,
    body: { message: 'Your account has reached its billing limit.' },
    source: 'https://github.com/cohere-ai/cohere-developer-experience/pull/189',
  },
  {
    kinds: ['hosted_vllm', 'fireworks', 'deepinfra', 'nvidia', 'together'],
    condition: 'context_length',
    status: 400,
    body: {
      object: 'error',
      message: "This model's maximum context length is 16384 tokens. However, you requested 19591 tokens.",
      type: 'BadRequestError',
      param: null,
      code: 400,
    },
    source: 'https://github.com/vllm-project/vllm/issues/20409',
  },
  {
    kinds: ['sglang'],
    condition: 'context_length',
    status: 400,
    body: {
      object: 'error',
      message: "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
      type: 'BadRequestError',
      param: null,
      code: 400,
    },
    says: "longer than the model's context length",
    source: 'https://github.com/QwenLM/Qwen3/issues/1321',
  },
  {
    kinds: ['llamafile', 'lm_studio'],
    condition: 'context_length',
    status: 400,
    body: {
      error: {
        code: 400,
        message: 'request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it',
        type: 'exceed_context_size_error',
        n_prompt_tokens: 4390,
        n_ctx: 4096,
      },
    },
    says: String.raw`\bexceed_context_size_error\b|available context size`,
    source: 'https://github.com/ggml-org/llama.cpp/issues/19774',
  },
  {
    kinds: ['llamafile'],
    condition: 'context_length',
    status: 500,
    body: { error: { code: 500, message: 'Context size has been exceeded.', type: 'server_error' } },
    says: 'context size has been exceeded|available context size',
    source: 'https://github.com/ggml-org/llama.cpp/issues/19774',
  },
  {
    kinds: ['huggingface'],
    condition: 'context_length',
    status: 422,
    body: {
      error:
        'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 1244 `inputs` tokens and 1000 `max_new_tokens`',
      error_type: 'validation',
    },
    says: '`inputs` (tokens|must have less than)',
    source: 'https://github.com/huggingface/text-generation-inference/issues/628',
  },
];
