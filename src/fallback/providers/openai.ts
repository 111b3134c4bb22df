import { readJson } from '../../kit/json.ts';
import { modelName } from '../rules/kinds.ts';
import { type Answer, arrayOf, type ChatProtocol, objectOf, textOf, usageOf } from './protocol.ts';

/** OpenAI's chat completions API, which most providers support. */
export const openai: ChatProtocol = {
  keyHeaders: (key) => ({ authorization: `Bearer ${key}` }),

  request(provider, prompt, stream) {
    // OpenAI has renamed the field, and its newer models refuse the old name. Other providers use the old one.
    const limit = provider.provider === 'openai' && provider.api_base === null ? 'max_completion_tokens' : 'max_tokens';
    const body = {
      model: modelName(provider),
      messages: [{ role: 'user', content: prompt }],
      ...(provider.max_tokens === null ? {} : { [limit]: provider.max_tokens }),
      ...(stream ? { stream: true, stream_options: { include_usage: true } } : {}),
    };
    return { headers: {}, body: JSON.stringify(body) };
  },

  answerOf(body) {
    const [choice] = arrayOf(objectOf(body).choices);
    if (choice === undefined) return undefined;
    const { message, finish_reason } = objectOf(choice);
    const { content, refusal } = objectOf(message);
    const { prompt_tokens, completion_tokens } = objectOf(objectOf(body).usage);
    return {
      text: contentText(content) || (textOf(refusal) ?? ''),
      finishReason: textOf(finish_reason),
      usage: usageOf(prompt_tokens, completion_tokens),
    };
  },

  readStream() {
    let text = '';
    let hasOther = false;
    let finishReason: string | null = null;
    let usage: Answer['usage'] = null;
    return {
      take(_, data) {
        if (data.trim() === '[DONE]') return true;
        const chunk = objectOf(readJson(data));
        if (chunk.error !== undefined) throw new Error('The stream carries an error.');
        const { delta, finish_reason } = objectOf(arrayOf(chunk.choices)[0]);
        const { content, reasoning_content, reasoning, refusal, tool_calls } = objectOf(delta);
        text += contentText(content);
        hasOther ||= [reasoning_content, reasoning, refusal].some((part) => (textOf(part) ?? '') !== '') || arrayOf(tool_calls).length > 0;
        finishReason = textOf(finish_reason) ?? finishReason;
        const { prompt_tokens, completion_tokens } = objectOf(chunk.usage);
        usage = usageOf(prompt_tokens, completion_tokens) ?? usage;
        return false;
      },
      hasContent: () => text !== '' || hasOther,
      answer: () => ({ text, finishReason, usage }),
    };
  },
};

/** A message's content as text; the content is a text or a list of parts. */
function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  return arrayOf(content)
    .map((part) => textOf(objectOf(part).text) ?? '')
    .join('');
}
