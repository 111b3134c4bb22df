import { ofNoAnswer } from '../../conditions.ts';
import { modelName } from '../../kinds.ts';
import { baseCode, literal, moduleText } from '../code.ts';
import { addressVariable, speaksAnthropic } from '../kind-names.ts';
import type { Exporter } from '../target.ts';

/**
 * A module for LangChain (JavaScript): `chain` is a Runnable that follows the chain. It implements the rules itself, since
 * `withFallbacks` can't stop at an error and `withRetry` can't distinguish errors by rule.
 */
export const exportLangchain: Exporter = (source) => {
  const content = moduleText(source, {
    clients: {
      anthropic: "import { ChatAnthropic } from '@langchain/anthropic';\n",
      openai: "import { ChatOpenAI } from '@langchain/openai';\n",
    },
    head: (clients) => `import { RunnableLambda } from '@langchain/core/runnables';\n${clients}`,
    order: "The providers in order. The clients' own retries are off, since the rules decide.",
    model(exported, apiKey) {
      const { provider } = exported;
      const parts = [`model: ${literal(modelName(provider))}`, `apiKey: ${apiKey}`, 'maxRetries: 0'];
      if (provider.max_tokens !== null) parts.push(`maxTokens: ${provider.max_tokens}`);
      if (!speaksAnthropic(provider)) parts.push(`configuration: { baseURL: ${baseCode(exported)} }`);
      // The client adds /v1.
      else if (provider.api_base !== null) parts.push(`anthropicApiUrl: ${literal(provider.api_base.replace(/\/v1\/?$/, ''))}`);
      else if (addressVariable(provider) !== undefined) parts.push(`anthropicApiUrl: ${baseCode(exported)}`);
      return `new ${speaksAnthropic(provider) ? 'ChatAnthropic' : 'ChatOpenAI'}({ ${parts.join(', ')} })`;
    },
    body,
  });
  source.warnings.add(
    'streaming',
    null,
    'The exported chain returns whole answers and does not stream, because another provider could not continue a stream that broke off.',
  );
  return content;
};

const body = `/** The chain as a Runnable, with the input and output of a chat model. */
export const chain = RunnableLambda.from(async (input, config) => {
  const left = new Set();
  let queue = [...providers];
  let last;
  for (let provider = queue.shift(); provider; provider = queue.shift()) {
    if (left.has(provider)) continue;
    left.add(provider);
    try {
      return await guarded(provider, (signal) => ask(provider, input, { ...config, signal }), config?.signal);
    } catch (error) {
      if (error.endsChain) throw error;
      if (error.to) queue = error.to.map((name) => providers.find((other) => other.name === name));
      last = error;
    }
  }
  throw last;
}).withConfig({ runName: name });

/** Calls a provider once. Throws if the answer is empty or was cut off by a content filter. */
async function ask(provider, input, config) {
  const answer = await provider.model().invoke(input, config);
  const reason = answer.response_metadata?.finish_reason ?? answer.response_metadata?.stop_reason;
  requireAnswer(answer.content.length === 0 && !answer.tool_calls?.length, reason);
  return answer;
}

/** The details of an error of the clients. Without a status, the answer could not be parsed or the connection failed. */
function failureOf(error) {
  const { condition, status, headers } = error;
  const unread = status === undefined && (error instanceof SyntaxError || error instanceof TypeError);
  // LangChain appends an address, which has MODEL_NOT_FOUND for any 404.
  const [message] = String(error.message).split('Troubleshooting URL: ');
  const words = [error.code, error.type, message, JSON.stringify(error.error ?? '')].join(' ');
  const retryAfter = headers?.get?.('retry-after') ?? headers?.['retry-after'];
  return { condition: condition ?? (unread ? ${literal(ofNoAnswer.unusable)} : undefined), status, words, retryAfter };
}
`;
