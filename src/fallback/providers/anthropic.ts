import { readJson } from '../../kit/json.ts';
import { modelName } from '../rules/kinds.ts';
import { type ChatProtocol, objectOf, textOf, usageOf } from './protocol.ts';

/** The API version that every request names. */
const apiVersion = '2023-06-01';

/** The default of `max_tokens`, which the API requires. */
const defaultMaxTokens = 1024;

/** Anthropic's messages API. */
export const anthropic: ChatProtocol = {
  keyHeaders: (key) => ({ 'x-api-key': key }),

  request(provider, prompt, stream) {
    const body = {
      model: modelName(provider),
      max_tokens: provider.max_tokens ?? defaultMaxTokens,
      messages: [{ role: 'user', content: prompt }],
      ...(stream ? { stream: true } : {}),
    };
    return { headers: { 'anthropic-version': apiVersion }, body: JSON.stringify(body) };
  },

  answerOf(body) {
    const { content, stop_reason, usage } = objectOf(body);
    if (!Array.isArray(content)) return undefined;
    const text = content.map((block) => textOf(objectOf(block).text) ?? '').join('');
    const { input_tokens, output_tokens } = objectOf(usage);
    return { text, finishReason: textOf(stop_reason), usage: usageOf(input_tokens, output_tokens) };
  },

  readStream() {
    let text = '';
    let hasOther = false;
    let finishReason: string | null = null;
    let input: unknown;
    let output: unknown;
    return {
      take(event, data) {
        const message = objectOf(readJson(data));
        const type = textOf(message.type) ?? event;
        if (type === 'error') throw new Error('The stream carries an error.');
        if (type === 'message_start') input = objectOf(objectOf(message.message).usage).input_tokens;
        if (type === 'content_block_start') hasOther ||= objectOf(message.content_block).type === 'tool_use';
        if (type === 'content_block_delta') {
          text += textOf(objectOf(message.delta).text) ?? '';
          hasOther ||= objectOf(message.delta).type !== 'text_delta';
        }
        if (type === 'message_delta') {
          finishReason = textOf(objectOf(message.delta).stop_reason) ?? finishReason;
          output = objectOf(message.usage).output_tokens ?? output;
        }
        return type === 'message_stop';
      },
      hasContent: () => text !== '' || hasOther,
      answer: () => ({ text, finishReason, usage: usageOf(input, output) }),
    };
  },
};
