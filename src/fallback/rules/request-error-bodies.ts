import { openaiBody, type ProviderError } from './provider-error-bodies.ts';

const unsupported = (message: string, param: string) => ({
  error: { message, type: 'invalid_request_error', param, code: 'unsupported_parameter' },
});

/** Errors about the model of a request, and about a field, a tool or a modality that the model does not take. */
export const requestErrors: readonly ProviderError[] = [
  {
    kinds: ['openai', 'groq'],
    condition: 'model_not_found',
    status: 404,
    body: openaiBody('The model does not exist or you do not have access to it.', 'invalid_request_error', 'model_not_found'),
    says: String.raw`\bmodel_not_found\b|"param":\s*"model"|\bmodel\b.{0,256} does not exist\b`,
    source: 'https://github.com/lobehub/lobehub/issues/3367',
  },
  {
    kinds: ['anthropic'],
    condition: 'model_not_found',
    status: 404,
    body: { type: 'error', error: { type: 'not_found_error', message: 'model: rehearsal' }, request_id: 'req_rehearsal' },
    says: String.raw`\bnot_found_error\b.{0,40}\bmodel:`,
    source: 'https://github.com/anthropics/claude-code/issues/5349',
  },
  {
    kinds: ['gemini', 'vertex_ai'],
    condition: 'model_not_found',
    status: 404,
    body: {
      error: {
        code: 404,
        message: 'models/gemini-pro is not found for API version v1beta, or is not supported for generateContent.',
        status: 'NOT_FOUND',
      },
    },
    says: 'is not found for API version',
    source: 'https://github.com/wwardaww/gnome-gemini-ai/issues/22',
  },
  {
    kinds: ['azure', 'azure_ai'],
    condition: 'model_not_found',
    status: 404,
    body: { error: { code: 'DeploymentNotFound', message: 'The API deployment for this resource does not exist.' } },
    says: String.raw`\bDeploymentNotFound\b`,
    source: 'https://github.com/chatboxai/chatbox/issues/646',
  },
  {
    kinds: ['deepseek'],
    condition: 'model_not_found',
    status: 400,
    body: openaiBody('Model Not Exist', 'invalid_request_error', 'invalid_request_error'),
    says: String.raw`\bModel Not Exist\b`,
    source: 'https://github.com/langbot-app/LangBot/issues/1643',
  },
  {
    kinds: ['openrouter'],
    condition: 'model_not_found',
    status: 400,
    body: { error: { message: 'deepseek-chat is not a valid model ID', code: 400 } },
    says: 'is not a valid model ID',
    source: 'https://github.com/MuiseDestiny/zotero-gpt/issues/483',
  },
  {
    kinds: ['openai'],
    condition: 'unsupported_request',
    status: 400,
    body: unsupported("Unsupported parameter: 'max_tokens' is not supported with this model.", 'max_tokens'),
    says: String.raw`\b(unsupported_parameter|unsupported_value|unknown_parameter)\b|"param":\s*"\w|is not supported with this model`,
    source: 'https://github.com/microsoft/vscode-copilot-release/issues/8065',
  },
  {
    kinds: ['anthropic'],
    condition: 'unsupported_request',
    status: 400,
    body: {
      type: 'error',
      error: { type: 'invalid_request_error', message: 'tools.0.custom.defer_loading: Extra inputs are not permitted' },
      request_id: 'req_rehearsal',
    },
    says: 'Extra inputs are not permitted',
    source: 'https://github.com/anthropics/claude-code/issues/31033',
  },
  {
    kinds: ['mistral'],
    condition: 'unsupported_request',
    status: 422,
    body: { detail: [{ type: 'extra_forbidden', loc: ['body', 'store'], msg: 'Extra inputs are not permitted', input: false }] },
    says: String.raw`\bextra_forbidden\b`,
    source: 'https://github.com/Gitlawb/openclaude/issues/739',
  },
  {
    kinds: ['groq'],
    condition: 'unsupported_request',
    status: 400,
    body: {
      error: {
        message:
          "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning' is unsupported)]",
        type: 'invalid_request_error',
      },
    },
    says: String.raw`property '\w+' is unsupported`,
    source: 'https://github.com/karthink/gptel/issues/774',
  },
  {
    kinds: ['deepseek'],
    condition: 'unsupported_request',
    status: 400,
    body: openaiBody(
      'Failed to deserialize the JSON body into the target type: messages[7]: unknown variant `image_url`, expected `text`',
      'invalid_request_error',
      'invalid_request_error',
    ),
    says: 'unknown variant',
    source: 'https://github.com/1jehuang/jcode/issues/310',
  },
  {
    kinds: ['xai'],
    condition: 'unsupported_request',
    status: 400,
    body: { code: 'Client specified an invalid argument', error: 'Model grok-4-latest does not support parameter reasoningEffort.' },
    says: 'does not support parameter',
    source: 'https://github.com/BerriAI/litellm/pull/16265',
  },
];
