import { ProtocolError, ProtocolErrorCode, SUBSCRIPTION_ID_META_KEY } from '@modelcontextprotocol/server';
import { readJson } from '../../kit/json.ts';

import type { McpHttpAnswer, McpHttpRequest } from './http.ts';
import { declaresTasks, detailsOf, type McpDependencies, tasksNotDeclared, unlessUnknown } from './server.ts';
import type { Session } from './session.ts';
import { packetOfTask, taskOf } from './tasks.ts';

/** The most tasks of one subscription, since a change of their packet reads each of them. */
const maxTasks = 100;

/** The URI that stands for a task, since the SDK only knows subscriptions of resources. */
const uriOf = (taskId: string) => `task:${taskId}`;

/** The tasks that a client listens to by `subscriptions/listen`. */
interface SubscribedTasks {
  /** The client's message, with its tasks as resources. */
  readonly body: unknown;
  /** The messages of the SDK, of which the first names the tasks in place of the resources. */
  messages(ofSdk: ReadableStream<Uint8Array>): AsyncIterable<Uint8Array>;
  /** Sends the tasks whose status has changed with an event on these channels; at first, without channels, those that are over already. */
  changed(send: SendMessage, channels?: readonly string[]): Promise<void>;
}

/** Sends a message; resolves when the connection has taken it, with whether it is open. */
export type SendMessage = (message: Buffer) => Promise<boolean>;

const fieldsOf = (value: unknown) => (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;

/**
 * The tasks in a `subscriptions/listen`; unknown ones are left out.
 * https://modelcontextprotocol.github.io/ext-tasks/specification/2026-07-28/tasks.html#task-status-notifications
 * @returns undefined if the client listens to no tasks, and an answer if its request is refused
 */
export async function subscribedTasks(
  { body, session: parts }: McpHttpRequest,
  refusalOf: McpDependencies['refusalOf'],
): Promise<SubscribedTasks | McpHttpAnswer | undefined> {
  const params = fieldsOf(fieldsOf(body).params);
  const { taskIds, resourceSubscriptions, ...others } = fieldsOf(params.notifications);
  if (taskIds === undefined) return undefined;
  if (!declaresTasks(fieldsOf(params._meta))) return refused(body, 400, tasksNotDeclared());
  if (!Array.isArray(taskIds) || taskIds.length > maxTasks || taskIds.some((id) => typeof id !== 'string'))
    return refused(body, 200, new ProtocolError(ProtocolErrorCode.InvalidParams, `taskIds must be a list of up to ${maxTasks} ids.`));

  const session = { ...parts, takesTasks: true };
  const read = (by: Session, taskId: string) => taskOf(by, taskId).catch(unlessUnknown(refusalOf));
  /** The status of each task that was sent last. */
  const sent = new Map<string, string>();
  for (const taskId of new Set<string>(taskIds)) if ((await read(session, taskId)) !== undefined) sent.set(taskId, 'working');
  const accepted = [...sent.keys()];

  const due = new Set<string>();
  let isReading = false;
  /** Reads the tasks one after the other, so that no older state is sent after a newer one. */
  async function sendDue(send: SendMessage): Promise<void> {
    if (isReading) return;
    isReading = true;
    try {
      for (const taskId of due) {
        due.delete(taskId);
        const found = await read(session, taskId);
        if (found === undefined || found.task.status === sent.get(taskId)) continue;
        sent.set(taskId, found.task.status);
        if (!(await send(messageOf('notifications/tasks', { ...detailsOf(found), _meta })))) return;
      }
    } finally {
      isReading = false;
    }
  }

  const _meta = { [SUBSCRIPTION_ID_META_KEY]: fieldsOf(body).id };
  const resources = Array.isArray(resourceSubscriptions) ? resourceSubscriptions : [];
  return {
    body: {
      ...fieldsOf(body),
      params: { ...params, notifications: { ...others, resourceSubscriptions: [...resources, ...accepted.map(uriOf)] } },
    },
    async *messages(ofSdk) {
      let isFirst = true;
      // Each chunk is one event.
      for await (const chunk of ofSdk) {
        yield isFirst ? acknowledged(chunk, accepted) : chunk;
        isFirst = false;
      }
    },
    changed(send, channels) {
      for (const taskId of accepted) if (channels === undefined || channels.includes(`packet:${packetOfTask(taskId)}`)) due.add(taskId);
      return sendDue(send);
    },
  };
}

const messageOf = (method: string, params: object): Buffer =>
  Buffer.from(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', method, params })}\n\n`);

/** The acknowledgement of the SDK, in which resources stand for the accepted tasks, as the client gets it. */
function acknowledged(chunk: Uint8Array, accepted: readonly string[]): Uint8Array {
  const data = /^data: (.*)$/m.exec(Buffer.from(chunk).toString())![1]!;
  const { method, params } = readJson(data) as { method: string; params: Record<string, unknown> };
  const uris = accepted.map(uriOf);
  const { resourceSubscriptions, ...others } = fieldsOf(params.notifications);
  const resources = (resourceSubscriptions as string[] | undefined)?.filter((uri) => !uris.includes(uri)) ?? [];
  const notifications = {
    ...others,
    ...(resources.length === 0 ? {} : { resourceSubscriptions: resources }),
    ...(accepted.length === 0 ? {} : { taskIds: accepted }),
  };
  return messageOf(method, { ...params, notifications });
}

function refused(body: unknown, status: number, { code, message, data }: ProtocolError): McpHttpAnswer {
  const { id = null } = fieldsOf(body);
  const error = { code, message, ...(data === undefined ? {} : { data }) };
  return { status, contentType: 'application/json', text: JSON.stringify({ jsonrpc: '2.0', id, error }) };
}
