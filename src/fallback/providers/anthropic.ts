import { readJson } from '../../kit/json.ts';
import { modelName } from '../rules/kinds.ts';
import { bodyWith, smallImage } from '../rules/shapes.ts';
import { AnswerParts, type ChatProtocol, objectOf, textOf, usageOf } from './protocol.ts';

/** The API version that every request names. */
const apiVersion = '2023-06-01';

/** The default of `max_tokens`, which the API requires. */
const defaultMaxTokens = 1024;

/** The tokens for reasoning at each effort. */
const budgets = { low: 1024, medium: 2048, high: 4096 } as const;

/** Anthropic's messages API. */
export const anthropic: ChatProtocol = {
  keyHeaders: (key) => ({ 'x-api-key': key }),

  request(provider, prompt, shape) {
    const { stream, tools, hasImage, effort, format, body: real } = shape;
    const headers = { 'anthropic-version': apiVersion };
    const streaming = stream ? { stream: true } : {};
    if (real !== null) return { headers, body: JSON.stringify({ ...bodyWith(real, prompt), model: modelName(provider), ...streaming }) };
    const most = shape.maxTokens ?? provider.max_tokens ?? defaultMaxTokens;
    const budget = effort === null ? 0 : budgets[effort];
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: smallImage } };
    const schema = objectOf(format?.json_schema).schema ?? format?.schema;
    const body = {
      model: modelName(provider),
      max_tokens: budget === 0 ? most : Math.max(most, budget + defaultMaxTokens),
      messages: [{ role: 'user', content: hasImage ? [{ type: 'text', text: prompt }, image] : prompt }],
      ...(tools.length === 0
        ? {}
        : { tools: tools.map(({ name, description, parameters }) => ({ name, description, input_schema: parameters })) }),
      ...(budget === 0 ? {} : { thinking: { type: 'enabled', budget_tokens: budget } }),
      ...(schema === undefined ? {} : { output_config: { format: { type: 'json_schema', schema } } }),
      ...streaming,
    };
    return { headers, body: JSON.stringify(body) };
  },

  answerOf(body) {
    const { content, stop_reason, usage, model } = objectOf(body);
    if (!Array.isArray(content)) return undefined;
    const blocks = content.map(objectOf);
    const text = blocks.map((block) => textOf(block.text) ?? '').join('');
    const toolCalls = blocks.flatMap(({ type, name, input }) =>
      type === 'tool_use' ? [{ name: textOf(name), arguments: JSON.stringify(input ?? null) }] : [],
    );
    const { input_tokens, output_tokens } = objectOf(usage);
    return {
      text,
      toolCalls,
      chunks: Number(text !== '') + toolCalls.length,
      model: textOf(model),
      finishReason: textOf(stop_reason),
      usage: usageOf(input_tokens, output_tokens),
    };
  },

  readStream() {
    const parts = new AnswerParts();
    let input: unknown;
    let output: unknown;
    return {
      take(event, data) {
        const message = objectOf(readJson(data));
        const type = textOf(message.type) ?? event;
        if (type === 'error') throw new Error('The stream carries an error.');
        if (type === 'message_start') {
          const { usage, model } = objectOf(message.message);
          input = objectOf(usage).input_tokens;
          parts.model ??= textOf(model);
        }
        const index = typeof message.index === 'number' ? message.index : 0;
        if (type === 'content_block_start') {
          const { type: kind, name } = objectOf(message.content_block);
          if (kind === 'tool_use') parts.add({ call: index, name: textOf(name) });
        }
        if (type === 'content_block_delta') {
          const { type: kind, text, partial_json } = objectOf(message.delta);
          parts.add({ text: textOf(text) ?? '' });
          if (kind === 'input_json_delta') parts.add({ call: index, arguments: textOf(partial_json) ?? '' });
          else if (kind !== 'text_delta') parts.addOther();
        }
        if (type === 'message_delta') {
          parts.finishReason = textOf(objectOf(message.delta).stop_reason) ?? parts.finishReason;
          output = objectOf(message.usage).output_tokens ?? output;
        }
        return type === 'message_stop';
      },
      hasContent: () => parts.hasContent(),
      answer: () => ({ ...parts.answer(), usage: usageOf(input, output) }),
    };
  },
};
