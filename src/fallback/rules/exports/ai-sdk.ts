import type { Provider } from '../../model/chain.ts';
import { knownKind, modelName } from '../kinds.ts';
import type { WarningList } from '../warning-list.ts';
import { decisionsCode, guardCode, literal, rulesCode } from './code.ts';
import { baseOf, keyEnv, speaksAnthropic, warnOfKind } from './kind-names.ts';
import { type Exporter, type Source, slug, slugs, warnOfUnsupportedFields } from './target.ts';

/**
 * A module for the AI SDK with `ai-fallback`: `chainModel()` returns a language model that follows the chain. Each model
 * is wrapped in the chain's rules; `ai-fallback` moves from one model to the next.
 */
export const aiSdk: Exporter = (source, warnings) => {
  const { chain } = source;
  const names = slugs(chain.providers);
  const entries = chain.providers.map((provider, index) => providerCode(source, provider, index, names[index]!, warnings));
  const anthropic = chain.providers.some(speaksAnthropic);
  const openai = chain.providers.some((provider) => !speaksAnthropic(provider));
  warnOfUnsupportedFields(source, warnings);
  const capped = chain.providers.findIndex(({ max_tokens }) => max_tokens !== null);
  if (capped !== -1)
    warnings.add('max_tokens', null, 'max_tokens is the default of each call; a call can override it with maxOutputTokens.');
  warnings.add('no_retries_of_its_own', null, 'Call the model with maxRetries: 0; otherwise the AI SDK retries the whole chain.');
  const content = `${anthropic ? "import { createAnthropic } from '@ai-sdk/anthropic';\n" : ''}${openai ? "import { createOpenAICompatible } from '@ai-sdk/openai-compatible';\n" : ''}import { wrapLanguageModel } from 'ai';
import { createFallback } from 'ai-fallback';

/** The chain's name. */
export const name = ${literal(chain.name)};

${rulesCode(source)}
/** The providers in their order. */
const providers = [
${entries.join('\n')}
];

/**
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

/** Throws if the answer is empty or was cut off by a content filter. */
function checked(answer) {
  const reason = answer.finishReason?.unified ?? answer.finishReason;
  if (reason === 'content-filter') throw Object.assign(new Error('The answer was filtered.'), { condition: 'content_filter' });
  const something = answer.content.some((part) => part.type === 'tool-call' || (part.type === 'text' && part.text !== ''));
  if (!something) throw Object.assign(new Error('The answer is empty.'), { condition: 'invalid_response' });
  return answer;
}

/** The details of an error of the SDK. */
function failureOf(error) {
  const { condition, statusCode: status, message, responseBody, responseHeaders } = error;
  return { condition, status, words: [message, responseBody].join(' '), retryAfter: responseHeaders?.['retry-after'] };
}

${guardCode}`;
  return { filename: `${slug(chain.name)}.ai-sdk.mjs`, content_type: 'text/javascript', config: content, content };
};

function providerCode(source: Source, provider: Provider, index: number, slugged: string, warnings: WarningList): string {
  const apiKey = `process.env[${literal(keyEnv(provider, index, slugged, warnings))}]`;
  const anthropic = speaksAnthropic(provider);
  if (!anthropic && knownKind(provider.provider) === undefined) warnOfKind(provider, index, warnings);
  const parts = [`apiKey: ${apiKey}`, `baseURL: ${literal(baseOf(provider))}`];
  const made = anthropic
    ? `createAnthropic({ ${parts.join(', ')} })`
    : `createOpenAICompatible({ name: ${literal(slugged)}, ${parts.join(', ')} })`;
  return `  {
    name: ${literal(provider.name)},
    timeoutMs: ${provider.timeout_ms},
    maxTokens: ${provider.max_tokens ?? 'undefined'},
    decisions: ${decisionsCode(source, index)},
    model: () => ${made}(${literal(modelName(provider))}),
  },`;
}
