import { modelName } from '../../kinds.ts';
import { baseCode, literal, moduleText } from '../code.ts';
import { speaksAnthropic } from '../kind-names.ts';
import { type Exporter, warnOfInterrupted, warnOfOwnOrders } from '../target.ts';

/**
 * A module for the AI SDK with `ai-fallback`: `chainModel()` returns a language model that follows the chain. Each model
 * is wrapped in the chain's rules; `ai-fallback` moves from one model to the next.
 */
export const exportAiSdk: Exporter = (source) => {
  const content = moduleText(source, {
    clients: {
      anthropic: "import { createAnthropic } from '@ai-sdk/anthropic';\n",
      openai: "import { createOpenAICompatible } from '@ai-sdk/openai-compatible';\n",
    },
    head: (clients) => `${clients}import { wrapLanguageModel } from 'ai';\nimport { createFallback } from 'ai-fallback';\n`,
    order: 'The providers in their order.',
    fields: ({ provider }) => `    maxTokens: ${provider.max_tokens ?? 'undefined'},\n`,
    model(exported, apiKey) {
      const { provider, slug } = exported;
      const parts = `apiKey: ${apiKey}, baseURL: ${baseCode(exported)}`;
      const client = speaksAnthropic(provider)
        ? `createAnthropic({ ${parts} })`
        : `createOpenAICompatible({ name: ${literal(slug)}, ${parts} })`;
      return `${client}(${literal(modelName(provider))})`;
    },
    body,
  });
  warnOfOwnOrders(source, 'ai-fallback');
  warnOfInterrupted(source, 'The exported model');
  if (source.chain.providers.some(({ max_tokens }) => max_tokens !== null))
    source.warnings.add('max_tokens', null, 'max_tokens is the default of each call; a call can override it with maxOutputTokens.');
  source.warnings.add('no_retries_of_its_own', null, 'Call the model with maxRetries: 0; otherwise the AI SDK retries the whole chain.');
  return content;
};

const body = `/**
 * The chain as a language model for one call: \`generateText({ model: chainModel(), maxRetries: 0, ... })\`. The model
 * remembers its current provider, so each concurrent call needs its own model.
 */
export function chainModel() {
  return createFallback({
    models: providers.map((provider) => wrapLanguageModel({ model: provider.model(), middleware: rulesOf(provider) })),
    modelResetInterval: 0,
    shouldRetryThisError: (error) => !error.endsChain,
  });
}

/** Applies a provider's rules to its model; to a stream only until it begins. */
function rulesOf(provider) {
  const withDefaults = (params, abortSignal) => ({ maxOutputTokens: provider.maxTokens, ...defined(params), abortSignal });
  return {
    specificationVersion: 'v3',
    wrapGenerate: ({ model, params }) =>
      guarded(provider, async (signal) => checked(await model.doGenerate(withDefaults(params, signal))), params.abortSignal),
    wrapStream: ({ model, params }) => guarded(provider, (signal) => model.doStream(withDefaults(params, signal)), params.abortSignal),
  };
}

const defined = (params) => Object.fromEntries(Object.entries(params).filter(([, value]) => value !== undefined));

/** The answer. Throws if it is empty or was cut off by a content filter. */
function checked(answer) {
  const reason = answer.finishReason?.unified ?? answer.finishReason;
  const something = answer.content.some((part) => part.type === 'tool-call' || (part.type === 'text' && part.text !== ''));
  requireAnswer(!something, reason);
  return answer;
}

/** The details of an error of the SDK. */
function failureOf(error) {
  const { condition, statusCode: status, message, responseBody, responseHeaders } = error;
  return { condition, status, words: [message, responseBody].join(' '), retryAfter: responseHeaders?.['retry-after'] };
}
`;
