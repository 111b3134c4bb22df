import { readJson } from '../../kit/json.ts';
import { modelName } from '../rules/kinds.ts';
import { bodyWith, smallImage } from '../rules/shapes.ts';
import { type Answer, AnswerParts, arrayOf, type ChatProtocol, objectOf, textOf, usageOf } from './protocol.ts';

/** OpenAI's responses API, by which gateways are called. */
export const responses: ChatProtocol = {
  keyHeaders: (key) => ({ authorization: `Bearer ${key}` }),

  request(provider, prompt, shape) {
    const { stream, tools, hasImage, effort, format, body: real } = shape;
    const streaming = stream ? { stream: true } : {};
    if (real !== null)
      return { headers: {}, body: JSON.stringify({ ...bodyWith(real, prompt), model: modelName(provider), ...streaming }) };
    const most = shape.maxTokens ?? provider.max_tokens;
    const image = { type: 'input_image', image_url: `data:image/png;base64,${smallImage}` };
    const body = {
      model: modelName(provider),
      input: hasImage ? [{ role: 'user', content: [{ type: 'input_text', text: prompt }, image] }] : prompt,
      ...(most === null ? {} : { max_output_tokens: most }),
      ...(tools.length === 0 ? {} : { tools: tools.map((tool) => ({ type: 'function', ...tool })) }),
      ...(effort === null ? {} : { reasoning: { effort } }),
      ...(format === null ? {} : { text: { format: { type: format.type, ...objectOf(format.json_schema) } } }),
      ...streaming,
    };
    return { headers: {}, body: JSON.stringify(body) };
  },

  answerOf(body) {
    const { output } = objectOf(body);
    if (!Array.isArray(output)) return undefined;
    return answerOf(objectOf(body));
  },

  readStream() {
    const parts = new AnswerParts();
    let finished: Answer | undefined;
    return {
      take(event, data) {
        const message = objectOf(readJson(data));
        const type = textOf(message.type) ?? event;
        const response = objectOf(message.response);
        if (type === 'error' || type === 'response.failed') throw new Error('The stream carries an error.');
        parts.model ??= textOf(response.model);
        const item = objectOf(message.item);
        const call = textOf(message.item_id) ?? textOf(item.id) ?? '';
        if (type === 'response.output_item.added' && item.type === 'function_call') parts.add({ call, name: textOf(item.name) });
        if (type === 'response.output_text.delta') parts.add({ text: textOf(message.delta) ?? '' });
        if (type === 'response.function_call_arguments.delta') parts.add({ call, arguments: textOf(message.delta) ?? '' });
        if (/^response\.(?:refusal|reasoning\w*)\.delta$/.test(type)) parts.addOther();
        if (type !== 'response.completed' && type !== 'response.incomplete') return false;
        const { text, toolCalls, chunks, ...end } = answerOf(response);
        finished = { ...parts.answer(), ...end };
        return true;
      },
      hasContent: () => parts.hasContent(),
      answer: () => finished ?? parts.answer(),
    };
  },
};

function answerOf({ output, status, incomplete_details, usage, model }: Record<string, unknown>): Answer {
  const items = arrayOf(output).map(objectOf);
  const contents = items.flatMap(({ content }) => arrayOf(content).map(objectOf));
  const text = contents.map((part) => textOf(part.text) ?? textOf(part.refusal) ?? '').join('');
  const toolCalls = items.flatMap(({ type, name, arguments: given }) =>
    type === 'function_call' ? [{ name: textOf(name), arguments: textOf(given) ?? '' }] : [],
  );
  const { input_tokens, output_tokens } = objectOf(usage);
  return {
    text,
    toolCalls,
    chunks: Number(text !== '') + toolCalls.length,
    model: textOf(model),
    finishReason: textOf(objectOf(incomplete_details).reason) ?? textOf(status),
    usage: usageOf(input_tokens, output_tokens),
  };
}
