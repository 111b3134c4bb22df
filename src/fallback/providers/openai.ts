import { readJson } from '../../kit/json.ts';
import { modelName } from '../rules/kinds.ts';
import { bodyWith, smallImage } from '../rules/shapes.ts';
import { AnswerParts, arrayOf, type ChatProtocol, objectOf, textOf, usageOf } from './protocol.ts';

/** OpenAI's chat completions API, which most providers support. */
export const openai: ChatProtocol = {
  keyHeaders: (key) => ({ authorization: `Bearer ${key}` }),

  request(provider, prompt, shape) {
    const { stream, tools, hasImage, effort, format, body: real } = shape;
    const streaming = stream ? { stream: true, stream_options: { include_usage: true } } : {};
    if (real !== null)
      return { headers: {}, body: JSON.stringify({ ...bodyWith(real, prompt), model: modelName(provider), ...streaming }) };
    // OpenAI has renamed the field, and its newer models refuse the old name. Other providers use the old one.
    const limit = provider.provider === 'openai' && provider.api_base === null ? 'max_completion_tokens' : 'max_tokens';
    const most = shape.maxTokens ?? provider.max_tokens;
    const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${smallImage}` } };
    const body = {
      model: modelName(provider),
      messages: [{ role: 'user', content: hasImage ? [{ type: 'text', text: prompt }, image] : prompt }],
      ...(most === null ? {} : { [limit]: most }),
      ...(tools.length === 0 ? {} : { tools: tools.map((tool) => ({ type: 'function', function: tool })) }),
      ...(effort === null ? {} : { reasoning_effort: effort }),
      ...(format === null ? {} : { response_format: format }),
      ...streaming,
    };
    return { headers: {}, body: JSON.stringify(body) };
  },

  answerOf(body) {
    const [choice] = arrayOf(objectOf(body).choices);
    if (choice === undefined) return undefined;
    const { message, finish_reason } = objectOf(choice);
    const { content, refusal, tool_calls } = objectOf(message);
    const { prompt_tokens, completion_tokens } = objectOf(objectOf(body).usage);
    const text = contentText(content) || (textOf(refusal) ?? '');
    const toolCalls = arrayOf(tool_calls).map((call) => {
      const { name, arguments: given } = objectOf(objectOf(call).function);
      return { name: textOf(name), arguments: textOf(given) ?? '' };
    });
    return {
      text,
      toolCalls,
      chunks: Number(text !== '') + toolCalls.length,
      model: textOf(objectOf(body).model),
      finishReason: textOf(finish_reason),
      usage: usageOf(prompt_tokens, completion_tokens),
    };
  },

  readStream() {
    const parts = new AnswerParts();
    return {
      take(_, data) {
        if (data.trim() === '[DONE]') return true;
        const chunk = objectOf(readJson(data));
        if (chunk.error !== undefined) throw new Error('The stream carries an error.');
        parts.model ??= textOf(chunk.model);
        const { delta, finish_reason } = objectOf(arrayOf(chunk.choices)[0]);
        const { content, reasoning_content, reasoning, refusal, tool_calls } = objectOf(delta);
        parts.add({ text: contentText(content) });
        if ([reasoning_content, reasoning, refusal].some((part) => (textOf(part) ?? '') !== '')) parts.addOther();
        for (const [position, call] of arrayOf(tool_calls).entries()) {
          const { index, function: called } = objectOf(call);
          const { name, arguments: given } = objectOf(called);
          parts.add({ call: typeof index === 'number' ? index : position, name: textOf(name), arguments: textOf(given) ?? '' });
        }
        parts.finishReason = textOf(finish_reason) ?? parts.finishReason;
        const { prompt_tokens, completion_tokens } = objectOf(chunk.usage);
        parts.usage = usageOf(prompt_tokens, completion_tokens) ?? parts.usage;
        return false;
      },
      hasContent: () => parts.hasContent(),
      answer: () => parts.answer(),
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
