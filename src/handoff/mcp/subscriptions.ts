import { ProtocolError, ProtocolErrorCode, type ServerEvent } from '@modelcontextprotocol/server';

import { nextTurn } from '../../kit/awaitable.ts';
import type { McpHttpAnswer, McpHttpRequest } from './http.ts';
import { declaresTasks, detailsOf, type McpParts, tasksNotDeclared, unlessUnknown } from './server.ts';
import { packetOfTask, taskOf } from './tasks.ts';

/** The most tasks of one subscription, since a change of their packet reads each of them. */
const maxTasks = 100;

/** The URI that stands for a task, since the SDK only knows subscriptions of resources. */
const uriOf = (taskId: string) => `task:${taskId}`;

/** The tasks that a client listens to by `subscriptions/listen`. */
interface SubscribedTasks {
  /** The client's message, with its tasks as resources. */
  readonly body: unknown;
  /** The messages of the SDK, with notifications of tasks in place of those of the resources. */
  messages(ofSdk: ReadableStream<Uint8Array>): AsyncIterable<Uint8Array>;
  /** Sends the tasks whose status has changed with an event on these channels; at first, without channels, those that are over already. */
  changed(send: (event: ServerEvent) => void, channels?: readonly string[]): Promise<void>;
}

const fieldsOf = (value: unknown) => (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;

/**
 * The tasks in a `subscriptions/listen`; unknown ones are left out.
 * https://modelcontextprotocol.github.io/ext-tasks/specification/2026-07-28/tasks.html#task-status-notifications
 * @returns undefined if the client listens to no tasks, and an answer if its request is refused
 */
export async function subscribedTasks(
  { body, session: parts }: McpHttpRequest,
  refusalOf: McpParts['refusalOf'],
): Promise<SubscribedTasks | McpHttpAnswer | undefined> {
  const params = fieldsOf(fieldsOf(body).params);
  const { taskIds, resourceSubscriptions, ...others } = fieldsOf(params.notifications);
  if (taskIds === undefined) return undefined;
  if (!declaresTasks(fieldsOf(params._meta))) return refused(body, 400, tasksNotDeclared());
  if (!Array.isArray(taskIds) || taskIds.length > maxTasks || taskIds.some((id) => typeof id !== 'string'))
    return refused(body, 200, new ProtocolError(ProtocolErrorCode.InvalidParams, `taskIds must be a list of up to ${maxTasks} ids.`));

  const session = { ...parts, takesTasks: true };
  const read = (taskId: string) => taskOf(session, taskId).catch(unlessUnknown(refusalOf));
  /** The status of each task that was sent last. */
  const sent = new Map<string, string>();
  for (const taskId of new Set<string>(taskIds)) if ((await read(taskId)) !== undefined) sent.set(taskId, 'working');
  const accepted = [...sent.keys()];

  const due = new Set<string>();
  let isReading = false;
  /** Reads the tasks one after the other, so that no older state is sent after a newer one. */
  async function sendDue(send: (event: ServerEvent) => void): Promise<void> {
    if (isReading) return;
    isReading = true;
    try {
      for (const taskId of due) {
        due.delete(taskId);
        const found = await read(taskId);
        // A client may listen to a hundred tasks of one packet; others get their turn in between.
        await nextTurn();
        if (found === undefined || found.task.status === sent.get(taskId)) continue;
        sent.set(taskId, found.task.status);
        send({ kind: 'resource_updated', uri: uriOf(taskId), params: detailsOf(found) });
      }
    } finally {
      isReading = false;
    }
  }

  const resources = Array.isArray(resourceSubscriptions) ? resourceSubscriptions : [];
  return {
    body: {
      ...fieldsOf(body),
      params: { ...params, notifications: { ...others, resourceSubscriptions: [...resources, ...accepted.map(uriOf)] } },
    },
    async *messages(ofSdk) {
      // Each chunk is one event.
      for await (const chunk of ofSdk) {
        const data = /^data: (.*)$/m.exec(Buffer.from(chunk).toString())?.[1];
        yield data === undefined
          ? chunk
          : Buffer.from(`event: message\ndata: ${JSON.stringify(withTasks(JSON.parse(data), accepted))}\n\n`);
      }
    },
    changed(send, channels) {
      for (const taskId of accepted) if (channels === undefined || channels.includes(`packet:${packetOfTask(taskId)}`)) due.add(taskId);
      return sendDue(send);
    },
  };
}

interface Notification {
  readonly method?: string;
  readonly params?: Record<string, unknown>;
}

/** A message of the SDK, in which resources stand for the accepted tasks, as the client gets it. */
function withTasks({ method, params = {}, ...message }: Notification, accepted: readonly string[]): object {
  const uris = accepted.map(uriOf);
  if (method === 'notifications/resources/updated' && uris.includes(String(params.uri))) {
    const { uri, ...task } = params;
    return { ...message, method: 'notifications/tasks', params: task };
  }
  if (method !== 'notifications/subscriptions/acknowledged') return { ...message, ...(method === undefined ? {} : { method, params }) };
  const { resourceSubscriptions, ...others } = fieldsOf(params.notifications);
  const resources = (resourceSubscriptions as string[] | undefined)?.filter((uri) => !uris.includes(uri)) ?? [];
  const notifications = {
    ...others,
    ...(resources.length === 0 ? {} : { resourceSubscriptions: resources }),
    ...(accepted.length === 0 ? {} : { taskIds: accepted }),
  };
  return { ...message, method, params: { ...params, notifications } };
}

function refused(body: unknown, status: number, { code, message, data }: ProtocolError): McpHttpAnswer {
  const { id = null } = fieldsOf(body);
  const error = { code, message, ...(data === undefined ? {} : { data }) };
  return { status, contentType: 'application/json', text: JSON.stringify({ jsonrpc: '2.0', id, error }) };
}
