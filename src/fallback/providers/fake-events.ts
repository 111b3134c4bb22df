import { readJson } from '../../kit/json.ts';
import type { Endpoint } from '../model/request.ts';

/** The end of an answer: complete, with a tool call, or emptied by the provider's filter. */
type End = 'stop' | 'tool' | 'filtered';

/** The content of an answer: a text in parts, or a tool call with its arguments in parts. */
interface Content {
  readonly model: string;
  readonly end: End;
  readonly parts: readonly string[];
  /** The name of the tool that is called. */
  readonly tool: string;
}

/** The events of a streamed answer: what comes before its content, one text for each part of that, and its end. */
interface Events {
  readonly head: string;
  readonly content: readonly string[];
  readonly tail: string;
}

/** The answers of an API of chat models. */
interface AnswerForm {
  whole(content: Content): unknown;
  events(content: Content): Events;
  /** An error in a stream that has begun. */
  readonly errorEvent: string;
  /** A part of a stream that is no JSON. */
  readonly malformed: string;
}

/** The usage that each answer reports, in tokens. */
const usage = { input: 12, output: 6 };

const sum = usage.input + usage.output;
const created = 1_700_000_000;
const event = (type: string, fields: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
const failure = 'The server had an error while processing your request.';

const openaiUsage = { prompt_tokens: usage.input, completion_tokens: usage.output, total_tokens: sum };
const completion = (model: string, object: string) => ({
  id: 'chatcmpl-rehearsal',
  object,
  created,
  model,
  system_fingerprint: 'rehearsal',
  // Clients of Groq expect it.
  service_tier: 'default',
});
const toolCall = { id: 'call_rehearsal', type: 'function' } as const;

const chat: AnswerForm = {
  whole({ model, end, parts, tool }) {
    const text = parts.join('');
    const called = end === 'tool' ? { content: null, tool_calls: [{ ...toolCall, function: { name: tool, arguments: text } }] } : {};
    const message = { role: 'assistant', content: text, refusal: null, ...called };
    const finish_reason = { stop: 'stop', tool: 'tool_calls', filtered: 'content_filter' }[end];
    return { ...completion(model, 'chat.completion'), choices: [{ index: 0, message, logprobs: null, finish_reason }], usage: openaiUsage };
  },
  events({ model, end, parts, tool }) {
    const chunk = (fields: object) => `data: ${JSON.stringify({ ...completion(model, 'chat.completion.chunk'), ...fields })}\n\n`;
    const choice = (delta: object, finish_reason: string | null = null, more: object = {}) =>
      chunk({ choices: [{ index: 0, delta, logprobs: null, finish_reason }], ...more });
    const part = (text: string, index: number) => {
      if (end !== 'tool') return choice({ content: text });
      const opened = index === 0 ? choice({ tool_calls: [{ index: 0, ...toolCall, function: { name: tool, arguments: '' } }] }) : '';
      return opened + choice({ tool_calls: [{ index: 0, function: { arguments: text } }] });
    };
    const finish = { stop: 'stop', tool: 'tool_calls', filtered: 'content_filter' }[end];
    return {
      head: choice({ role: 'assistant', content: end === 'tool' ? null : '' }),
      content: parts.map(part),
      // Not in a part without a choice, which providers send only if they are asked to: Portkey breaks off a stream of DeepSeek there.
      tail: `${choice({}, finish, { usage: openaiUsage })}data: [DONE]\n\n`,
    };
  },
  errorEvent: `data: ${JSON.stringify({ error: { message: failure, type: 'server_error', param: null, code: null } })}\n\n`,
  malformed: 'data: {"id": "chatcmpl-rehearsal", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "\n\n',
};

const message = (model: string) => ({
  id: 'msg_rehearsal',
  type: 'message',
  role: 'assistant',
  model,
  content: [],
  stop_reason: null,
  stop_sequence: null,
  usage: { input_tokens: usage.input, output_tokens: usage.output },
});
const stopReasons = { stop: 'end_turn', tool: 'tool_use', filtered: 'refusal' } as const;
const toolUse = { type: 'tool_use', id: 'toolu_rehearsal' } as const;

const messages: AnswerForm = {
  whole({ model, end, parts, tool }) {
    const text = parts.join('');
    const block = end === 'tool' ? { ...toolUse, name: tool, input: readJson(text) } : { type: 'text', text };
    return { ...message(model), content: text === '' ? [] : [block], stop_reason: stopReasons[end] };
  },
  events({ model, end, parts, tool }) {
    const block = end === 'tool' ? { ...toolUse, name: tool, input: {} } : { type: 'text', text: '' };
    const delta = (text: string) => (end === 'tool' ? { type: 'input_json_delta', partial_json: text } : { type: 'text_delta', text });
    const start = event('content_block_start', { index: 0, content_block: block });
    const done = { stop_reason: stopReasons[end], stop_sequence: null };
    return {
      head: event('message_start', { message: message(model) }),
      content: parts.map((text, index) => (index === 0 ? start : '') + event('content_block_delta', { index: 0, delta: delta(text) })),
      tail:
        (parts.length === 0 ? '' : event('content_block_stop', { index: 0 })) +
        event('message_delta', { delta: done, usage: { output_tokens: usage.output } }) +
        event('message_stop', {}),
    };
  },
  errorEvent: event('error', { error: { type: 'overloaded_error', message: 'Overloaded' } }),
  malformed: 'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "\n\n',
};

const responsesUsage = {
  input_tokens: usage.input,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: usage.output,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: sum,
};
const response = (model: string, fields: object) => ({
  id: 'resp_rehearsal',
  object: 'response',
  created_at: created,
  error: null,
  incomplete_details: null,
  instructions: null,
  max_output_tokens: null,
  metadata: {},
  model,
  parallel_tool_calls: true,
  previous_response_id: null,
  temperature: 1,
  tool_choice: 'auto',
  tools: [],
  top_p: 1,
  ...fields,
});
const functionCall = { id: 'fc_rehearsal', type: 'function_call', call_id: 'call_rehearsal' } as const;

/** The output of a response, finished or not, and the response when it is over. */
function outputOf({ model, end, parts, tool }: Content) {
  const text = parts.join('');
  const part = (content: string) => ({ type: 'output_text', text: content, annotations: [] });
  const item = (status: string, content: string) =>
    end === 'tool'
      ? { ...functionCall, status, name: tool, arguments: content }
      : { id: 'msg_rehearsal', type: 'message', status, role: 'assistant', content: content === '' ? [] : [part(content)] };
  const outcome = end === 'filtered' ? { status: 'incomplete', incomplete_details: { reason: 'content_filter' } } : { status: 'completed' };
  const output = text === '' ? [] : [item('completed', text)];
  return { text, part, item, over: response(model, { ...outcome, output, usage: responsesUsage }) };
}

const responses: AnswerForm = {
  whole: (content) => outputOf(content).over,
  events(content) {
    const { model, end, parts } = content;
    const { text, part, item, over } = outputOf(content);
    let sequence_number = 0;
    const next = (type: string, fields: object) => event(type, { sequence_number: sequence_number++, ...fields });
    const at = { item_id: end === 'tool' ? functionCall.id : 'msg_rehearsal', output_index: 0 };
    const begun = response(model, { status: 'in_progress', output: [], usage: null });
    const head = next('response.created', { response: begun }) + next('response.in_progress', { response: begun });
    const opened = () =>
      next('response.output_item.added', { output_index: 0, item: item('in_progress', '') }) +
      (end === 'tool' ? '' : next('response.content_part.added', { ...at, content_index: 0, part: part('') }));
    const delta = (delta: string) =>
      end === 'tool'
        ? next('response.function_call_arguments.delta', { ...at, delta })
        : next('response.output_text.delta', { ...at, content_index: 0, delta, logprobs: [] });
    const sent = parts.map((one, index) => (index === 0 ? opened() : '') + delta(one));
    const closed = () =>
      (end === 'tool'
        ? next('response.function_call_arguments.done', { ...at, arguments: text })
        : next('response.output_text.done', { ...at, content_index: 0, text, logprobs: [] }) +
          next('response.content_part.done', { ...at, content_index: 0, part: part(text) })) +
      next('response.output_item.done', { output_index: 0, item: item('completed', text) });
    const last = end === 'filtered' ? 'response.incomplete' : 'response.completed';
    return { head, content: sent, tail: (parts.length === 0 ? '' : closed()) + next(last, { response: over }) };
  },
  errorEvent: event('error', { sequence_number: 9, code: 'server_error', message: failure, param: null }),
  malformed: 'event: response.output_text.delta\ndata: {"type": "response.output_text.delta", "delta": "\n\n',
};

/** The answers of fake providers by the API that is called. */
export const answerForms: Readonly<Record<Endpoint, AnswerForm>> = { chat, messages, responses };
