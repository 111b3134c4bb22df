import { type Message, Role } from '@a2a-js/sdk';
import { ContentTypeNotSupportedError, RequestMalformedError } from '@a2a-js/sdk/errors';
import { isObject } from '../../kit/json.ts';
import type { ChainRequest, RespondRequest } from '../model/packet.ts';
import type { Origin } from './task.ts';

/** The most characters of a message's id, which is the idempotency key of its packet. */
const maxIdLength = 255;

/** The message of a request. @throws A2AError when a required field is missing */
export function requireMessage(message: Message | undefined): Message {
  if (message === undefined) throw new RequestMalformedError('message is required.');
  if (message.messageId === '' || message.messageId.length > maxIdLength || /[^\x20-\x7e]/.test(message.messageId))
    throw new RequestMalformedError(`message.messageId must have 1 to ${maxIdLength} characters of ASCII.`);
  if (message.role !== Role.ROLE_USER) throw new RequestMalformedError('message.role must be ROLE_USER.');
  if (message.parts.length === 0) throw new RequestMalformedError('message.parts must have a part.');
  return message;
}

/** The texts, and the other parts, of a message. @throws A2AError for a part with the bytes of a file, or without content */
function partsOf({ parts }: Message) {
  const texts: string[] = [];
  const artifacts: { key: string; value: unknown; content_type?: string }[] = [];
  const indexes: number[] = [];
  for (const [index, { content, filename, mediaType }] of parts.entries()) {
    if (content?.$case === 'raw') throw new ContentTypeNotSupportedError(`message.parts.${index}: files are accepted only by URL.`);
    if (content === undefined) throw new RequestMalformedError(`message.parts.${index} must have text, data or url.`);
    if (content.$case === 'text') texts.push(content.value);
    else {
      const key = filename === '' ? `part-${index}` : filename;
      indexes.push(index);
      artifacts.push({ key, value: content.value as unknown, ...(mediaType === '' ? {} : { content_type: mediaType }) });
    }
  }
  return { texts, artifacts, indexes };
}

/** The packet that a message becomes. */
export function packetOf(message: Message, { source, target }: { source: string; target: string }): ChainRequest {
  const { texts, artifacts } = partsOf(message);
  const [summary = 'A message without text; see its artifacts.', ...turns] = texts;
  const a2a: Origin = { message_id: message.messageId, artifacts: artifacts.map(({ key }) => key) };
  return {
    metadata: {
      source_agent: { id: source, name: source, framework: 'a2a' },
      target_agent: { id: target, name: target },
      ...subjectsIn(message),
    },
    context: { summary, conversation_state: turns.map((content) => ({ role: 'user', content })), artifacts, custom: { a2a } },
  };
}

/** The people whose data the packet holds, as the metadata of the message names them; the operation checks them. */
const subjectsIn = ({ metadata }: Message) =>
  metadata?.subjects === undefined ? {} : { subjects: metadata.subjects as NonNullable<ChainRequest['metadata']['subjects']> };

/** The answer that a message gives to a question: its texts, and its data part. @throws A2AError for what an answer can't keep */
export function answerIn(message: Message, responded_by: string): RespondRequest {
  const { texts, artifacts, indexes } = partsOf(message);
  const lost = artifacts.findIndex(({ value }, place) => place > 0 || !isObject(value));
  if (lost !== -1)
    throw new ContentTypeNotSupportedError(
      `message.parts.${indexes[lost]}: an answer takes texts and one data part with the fields of a form. Send the address of a file as text.`,
    );
  const data = artifacts[0]?.value;
  return {
    ...(texts.length === 0 ? {} : { response: texts.join('\n') }),
    ...(data === undefined ? {} : { data: data as Record<string, unknown> }),
    responded_by,
  };
}

/** The question that a message asks in the task that it names: the data part `{ask: {...}}` with the fields of `hitl`; undefined if it asks none. */
export function questionIn(message: Message): Record<string, unknown> | undefined {
  const { texts, artifacts, indexes } = partsOf(message);
  const place = artifacts.findIndex(({ value }) => isObject(value) && isObject(value.ask) && Object.keys(value).length === 1);
  if (place === -1) return undefined;
  if (artifacts.length > 1)
    throw new ContentTypeNotSupportedError(
      `message.parts.${indexes[place === 0 ? 1 : 0]}: a message that asks has texts and one data part, {ask: {...}}.`,
    );
  const { ask } = artifacts[place]!.value as { ask: Record<string, unknown> };
  return texts.length === 0 ? ask : { question: texts.join('\n'), ...ask };
}

/** The decision that a message gives about an action: its data part, or the word in its text. @throws A2AError for what an answer can't keep */
export function decisionIn(message: Message, responded_by: string): RespondRequest {
  const { data, ...rest } = answerIn(message, responded_by);
  return data === undefined ? rest : ({ ...data, responded_by } as RespondRequest);
}
