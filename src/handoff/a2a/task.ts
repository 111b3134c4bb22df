import { type Artifact, type Message, type Part, Role, type Task, TaskState, type TaskStatus } from '@a2a-js/sdk';
import type { Status } from '../model/common.ts';
import type { Packet } from '../model/packet.ts';
import { askedStatus } from '../rules/packet-life.ts';
import { questionAtChange } from '../rules/question-state.ts';

/** The state of a task for each status of its packet. */
export const stateOf: Readonly<Record<Status, TaskState>> = {
  created: TaskState.TASK_STATE_SUBMITTED,
  claimed: TaskState.TASK_STATE_WORKING,
  in_progress: TaskState.TASK_STATE_WORKING,
  awaiting_human: TaskState.TASK_STATE_INPUT_REQUIRED,
  completed: TaskState.TASK_STATE_COMPLETED,
  failed: TaskState.TASK_STATE_FAILED,
  expired: TaskState.TASK_STATE_CANCELED,
};

/** What a packet keeps of the message that created it, in `context.custom.a2a`. */
export interface Origin {
  readonly message_id: string;
  /** The keys of the artifacts that the message brought. They are no results of the task. */
  readonly artifacts: readonly string[];
}

/** What the packet keeps of its message. Callers may write anything there, and what is of another form counts as left out. */
function originOf({ context }: Packet): Partial<Origin> {
  const { message_id, artifacts } = (context.custom.a2a ?? {}) as Readonly<Record<string, unknown>>;
  const isText = (value: unknown) => typeof value === 'string';
  return {
    ...(isText(message_id) ? { message_id: message_id as string } : {}),
    ...(Array.isArray(artifacts) && artifacts.every(isText) ? { artifacts: artifacts as string[] } : {}),
  };
}

const bare = { metadata: undefined, filename: '' };
const textPart = (value: string, mediaType = 'text/plain'): Part => ({ ...bare, content: { $case: 'text', value }, mediaType });
const dataPart = (value: unknown, mediaType = 'application/json'): Part => ({ ...bare, content: { $case: 'data', value }, mediaType });

/** The part of a file, if the text is its address on the web, or a data URL (RFC 2397) with its bytes in base64. */
function filePart(filename: string, text: string, mediaType = ''): Part | undefined {
  if (/^https?:\/\/\S+$/.test(text)) return { ...bare, content: { $case: 'url', value: text }, filename, mediaType };
  const [, type, base64] = /^data:([^;,]*);base64,([A-Za-z0-9+/]*=*)$/.exec(text) ?? [];
  if (base64 === undefined) return undefined;
  return { ...bare, content: { $case: 'raw', value: Buffer.from(base64, 'base64') }, filename, mediaType: mediaType || type! };
}

/** A packet as a task of A2A. */
export function taskOf(packet: Packet, contextId: string, historyLength?: number): Task {
  const history = historyOf(packet, contextId);
  return {
    id: packet.id,
    contextId,
    status: statusOf(packet, contextId),
    artifacts: artifactsOf(packet),
    history: historyLength === undefined ? history : history.slice(Math.max(0, history.length - historyLength)),
    metadata: { targetAgent: packet.metadata.target_agent.id, status: packet.status, revision: packet.revision },
  };
}

/** The status of the task of a packet; while it waits for input, its message is the question. */
export function statusOf(packet: Packet, contextId: string): TaskStatus {
  const state = stateOf[packet.status];
  const timestamp = new Date(packet.updated_at).toISOString();
  const said = (text: string) => message(packet, contextId, { messageId: `${packet.id}-${packet.revision}`, role: Role.ROLE_AGENT, text });
  const asked = questionMessage(packet, contextId);
  if (packet.status === askedStatus && asked !== undefined) return { state, timestamp, message: asked };
  const failure = packet.status === 'failed' ? packet.actions.failed.at(-1)?.error : undefined;
  return { state, timestamp, message: failure === undefined ? undefined : said(failure) };
}

/** The question of a packet: its text, and as data all that was asked. Undefined for one that is not asked. */
function questionMessage(packet: Packet, contextId: string): Message | undefined {
  const latest = questionAtChange(packet);
  if (latest.state === 'none' || latest.state === 'draft') return undefined;
  const { question, asked } = latest;
  const said = message(packet, contextId, {
    messageId: `${packet.id}-${asked.question_id}`,
    role: Role.ROLE_AGENT,
    text: question.question,
  });
  const { question: _, required: __, reason, action, ...fields } = question;
  const { edited, verified_only } = asked;
  // With the arguments as they would be approved now.
  const shown =
    action === undefined || edited === undefined
      ? action
      : { ...action, arguments: edited.arguments, arguments_digest: edited.arguments_digest };
  const data = {
    ...(shown === undefined ? {} : { action: shown }),
    ...(reason === '' ? {} : { reason }),
    ...fields,
    ...(verified_only === undefined ? {} : { verified_only }),
  };
  return Object.keys(data).length === 0 ? said : { ...said, parts: [...said.parts, dataPart(data)] };
}

/** The results of completed actions, and the artifacts that the message did not bring. */
export function artifactsOf(packet: Packet): Artifact[] {
  const brought = new Set(originOf(packet).artifacts ?? []);
  const empty = { metadata: undefined, extensions: [] };
  const taken = new Set<string>();
  /** An id that no earlier artifact of the task has: keys and ids of actions may repeat. */
  const own = (id: string): string => {
    let free = id;
    for (let number = 2; taken.has(free); number += 1) free = `${id}-${number}`;
    taken.add(free);
    return free;
  };
  return [
    ...packet.actions.completed.map(({ id, description, result }) => ({
      ...empty,
      ...{ artifactId: own(`action-${id}`), name: id, description, parts: [textPart(result)] },
    })),
    ...packet.context.artifacts
      .filter(({ key }) => !brought.has(key))
      .map(({ key, value, content_type }) => ({
        ...empty,
        ...{ artifactId: own(`artifact-${key}`), name: key, description: '' },
        parts: [
          typeof value === 'string' ? (filePart(key, value, content_type) ?? textPart(value, content_type)) : dataPart(value, content_type),
        ],
      })),
  ];
}

function historyOf(packet: Packet, contextId: string): Message[] {
  const { context } = packet;
  const messageId = originOf(packet).message_id ?? `${packet.id}-summary`;
  const messages = [message(packet, contextId, { messageId, role: Role.ROLE_USER, text: context.summary })];
  for (const [index, { role, content }] of context.conversation_state.entries())
    messages.push(
      message(packet, contextId, {
        messageId: `${packet.id}-turn-${index}`,
        role: role === 'user' ? Role.ROLE_USER : Role.ROLE_AGENT,
        text: content,
      }),
    );
  const latest = questionAtChange(packet);
  const asked = questionMessage(packet, contextId);
  if (asked !== undefined) messages.push(asked);
  if (latest.state === 'answered')
    messages.push(message(packet, contextId, { messageId: `${packet.id}-answer`, role: Role.ROLE_USER, text: latest.answer.response }));
  return messages;
}

function message({ id }: Packet, contextId: string, { messageId, role, text }: { messageId: string; role: Role; text: string }): Message {
  return { messageId, contextId, taskId: id, role, parts: [textPart(text)], metadata: undefined, extensions: [], referenceTaskIds: [] };
}
