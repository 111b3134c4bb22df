import {
  type AgentCard,
  type ListTasksRequest,
  type Message,
  type SendMessageRequest,
  type StreamResponse,
  type Task,
  type TaskPushNotificationConfig,
  TaskState,
} from '@a2a-js/sdk';
import { A2AError, RequestMalformedError, TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError } from '@a2a-js/sdk/errors';
import type { A2ARequestHandler, ServerCallContext } from '@a2a-js/sdk/server';

import { ServiceError } from '../../kit/errors.ts';
import { isId } from '../../kit/id.ts';
import { type CallApi, changeHeaders } from '../mcp/session.ts';
import type { PushConfig } from '../model/a2a.ts';
import { routes } from '../model/api.ts';
import { type Status, statuses } from '../model/common.ts';
import type { Packet } from '../model/packet.ts';
import { type Address, cardOf } from './card.ts';
import { answerIn, packetOf, requireMessage } from './message.ts';
import { artifactsOf, contextOf, finalStatuses, stateOf, statusOf, taskOf } from './task.ts';

/** Who is behind a request of A2A. */
export interface A2aSession {
  readonly call: CallApi;
  /** The agent that the request names, or the only one that its key may act as. */
  readonly agentId: string | undefined;
  /** Who answers: the person for whom the key may answer, else the key by its name. */
  readonly responder: string;
  readonly address: Address;
  /** The push notification configurations of a packet that the caller can read. */
  readonly pushes: Pushes;
  /** Aborts when nobody reads the answer any more. */
  readonly signal: AbortSignal;
}

/** `PushService`, for the caller of the request. */
export interface Pushes {
  check(config: PushConfig): Promise<void>;
  put(packetId: string, config: PushConfig): Promise<PushConfig>;
  list(packetId: string): Promise<PushConfig[]>;
  remove(packetId: string, id: string): Promise<void>;
}

/** Why the service refused an operation. */
export interface Refusal {
  readonly code: string;
  readonly message: string;
}

/** The key of the session in the state of a call. */
export const sessionKey = 'session';
const sessionOf = ({ state }: ServerCallContext) => state.get(sessionKey) as A2aSession;

/** The longest wait for a task in one request, in seconds. */
const maxWaitSeconds = 60;

/** The statuses that end a blocking message: the task is over, or waits for input. */
const settled: readonly Status[] = [...finalStatuses, 'awaiting_human'];

const maxPage = 100;

/** Makes the handler of A2A's methods. Each calls operations of the API. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: the methods of the protocol, each of them short, over the parts that they share.
export function createA2aHandler({ refusalOf }: { refusalOf(error: unknown): Refusal }): A2ARequestHandler {
  /** Calls operations, and turns a refusal of the API into the error of A2A with the same sentence. */
  async function refusing<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof A2AError) throw error;
      const { code, message } = refusalOf(error);
      if (code === 'NOT_FOUND') throw new TaskNotFoundError(message);
      if (code === 'VALIDATION_ERROR' || code === 'PAYLOAD_TOO_LARGE') throw new RequestMalformedError(message);
      if (code === 'SERVER_ERROR' || code === 'SERVICE_UNAVAILABLE' || code === 'RATE_LIMITED')
        throw new A2AError({ message, metadata: { code } });
      throw new UnsupportedOperationError({ message, metadata: { code } });
    }
  }

  async function* stream(first: () => Promise<Packet>, session: A2aSession, historyLength?: number): AsyncGenerator<StreamResponse, void> {
    let { packet, contextId } = await refusing(async () => {
      const found = await first();
      return { packet: found, contextId: await contextIn(session, found) };
    });
    yield { payload: { $case: 'task', value: taskOf(packet, contextId, historyLength) } };
    const sent = new Set(artifactsOf(packet).map(({ artifactId }) => artifactId));
    while (!finalStatuses.includes(packet.status) && !session.signal.aborted) {
      const { id: taskId, revision, status } = packet;
      const query = { wait_seconds: maxWaitSeconds, until_revision: revision + 1 };
      packet = await refusing(() => read(session, taskId, query));
      // Waits end at once while the service stops; the stream is ended in another turn.
      if (packet.revision === revision) await new Promise(setImmediate);
      for (const artifact of artifactsOf(packet).filter(({ artifactId }) => !sent.has(artifactId))) {
        sent.add(artifact.artifactId);
        const value = { taskId, contextId, artifact, append: false, lastChunk: true, metadata: undefined };
        yield { payload: { $case: 'artifactUpdate', value } };
      }
      if (packet.status !== status) {
        const value = { taskId, contextId, status: statusOf(packet, contextId), metadata: undefined };
        yield { payload: { $case: 'statusUpdate', value } };
      }
    }
  }

  return {
    getAgentCard: async (): Promise<AgentCard> => {
      throw new UnsupportedOperationError('The card is at /.well-known/agent-card.json.');
    },
    getAuthenticatedExtendedAgentCard: (_, context) =>
      refusing(async () => {
        const { call, address } = sessionOf(context);
        const found = await call(routes.listAgents, {});
        return cardOf(address, found?.agents.map(({ agent_id }) => agent_id) ?? []);
      }),
    sendMessage: (request, context) =>
      refusing(async () => {
        const session = sessionOf(context);
        const packet = await send(session, request);
        const isDone = request.configuration?.returnImmediately === true || settled.includes(packet.status);
        const query = { wait_seconds: maxWaitSeconds, until: settled.join(',') };
        return written(session, isDone ? packet : await read(session, packet.id, query), request.configuration?.historyLength);
      }),
    sendMessageStream(request, context) {
      const session = sessionOf(context);
      return stream(() => send(session, request), session, lengthOf(request.configuration?.historyLength));
    },
    resubscribe({ id }, context) {
      const session = sessionOf(context);
      return stream(async () => {
        const packet = await read(session, id);
        if (finalStatuses.includes(packet.status)) throw new UnsupportedOperationError(`The task is over: its packet is ${packet.status}.`);
        return packet;
      }, session);
    },
    getTask: ({ id, historyLength }, context) =>
      refusing(async () => written(sessionOf(context), await read(sessionOf(context), id), historyLength)),
    listTasks: (request, context) => refusing(() => list(sessionOf(context), request)),
    cancelTask: ({ id }, context) => refusing(() => cancel(sessionOf(context), id, refusalOf)),
    createTaskPushNotificationConfig: (config, context) =>
      refusing(async () => {
        const session = sessionOf(context);
        const { id } = await read(session, config.taskId);
        return pushOf(id, await session.pushes.put(id, config));
      }),
    getTaskPushNotificationConfig: ({ taskId, id }, context) =>
      refusing(async () => {
        const found = (await pushesOf(sessionOf(context), taskId)).find((config) => config.id === id);
        if (found === undefined) throw new TaskNotFoundError('The task has no push notification configuration with this id.');
        return found;
      }),
    listTaskPushNotificationConfigs: ({ taskId }, context) =>
      refusing(async () => ({ configs: await pushesOf(sessionOf(context), taskId), nextPageToken: '' })),
    deleteTaskPushNotificationConfig: ({ taskId, id }, context) =>
      refusing(async () => {
        const session = sessionOf(context);
        await session.pushes.remove((await read(session, taskId)).id, id);
      }),
  };
}

/** Undefined, if the error says that there is no such packet. */
function unlessKnown(error: unknown): undefined {
  if (!(error instanceof TaskNotFoundError) && !(error instanceof ServiceError && error.code === 'NOT_FOUND')) throw error;
}

/** A packet, or the packet once it is as the query waits for. @throws A2AError for an unknown id */
async function read({ call }: A2aSession, id: string, query: Record<string, unknown> = {}): Promise<Packet> {
  return must(isId(id) ? await call(routes.getPacket, { params: { id }, query }) : undefined);
}

const pushOf = (taskId: string, config: PushConfig): TaskPushNotificationConfig => ({ ...config, tenant: '', taskId });

async function pushesOf(session: A2aSession, taskId: string): Promise<TaskPushNotificationConfig[]> {
  const { id } = await read(session, taskId);
  return (await session.pushes.list(id)).map((config) => pushOf(id, config));
}

/** The id of a packet's context, as far as the caller can read its chain. */
const contextIn = ({ call }: A2aSession, packet: Packet): Promise<string> =>
  contextOf(packet, (id) => call(routes.getPacket, { params: { id } }).catch(() => undefined));

async function written(session: A2aSession, packet: Packet, historyLength?: number): Promise<Task> {
  return taskOf(packet, await contextIn(session, packet), lengthOf(historyLength));
}

/** @throws A2AError for a negative length */
function lengthOf(historyLength: number | undefined): number | undefined {
  if (historyLength !== undefined && !(historyLength >= 0)) throw new RequestMalformedError('historyLength must be 0 or more.');
  return historyLength;
}

/** Carries a message out, and adds the push notification configuration that comes with it. */
async function send(session: A2aSession, { message: given, configuration, metadata }: SendMessageRequest): Promise<Packet> {
  const message = requireMessage(given);
  lengthOf(configuration?.historyLength);
  const wanted = configuration?.taskPushNotificationConfig;
  // Without an id of its own it has that of the message, so that a repeat adds no other one.
  const push = wanted && { ...wanted, id: wanted.id || message.messageId };
  if (push !== undefined) await session.pushes.check(push);
  const packet = await (message.taskId === '' ? create(session, message, metadata) : answer(session, message));
  if (push !== undefined) await session.pushes.put(packet.id, push);
  return packet;
}

/** Creates the packet of a message, chained to the root of its context if it names one. */
async function create(session: A2aSession, message: Message, metadata: SendMessageRequest['metadata']): Promise<Packet> {
  const target = targetOf(session, { ...metadata, ...message.metadata });
  const body = packetOf(message, { source: session.agentId ?? 'a2a', target });
  const headers = changeHeaders({ agent: session.agentId, idempotency_key: message.messageId });
  if (message.contextId === '') return must(await session.call(routes.createPacket, { body, headers }));
  const root = await read(session, message.contextId);
  if (root.parent_packet_id !== null) throw new TaskNotFoundError('There is no context with this id.');
  return must(await session.call(routes.chainPacket, { params: { id: root.id }, body, headers }));
}

async function answer(session: A2aSession, message: Message): Promise<Packet> {
  const { id, status, ...packet } = await read(session, message.taskId);
  if (message.contextId !== '' && message.contextId !== (await contextIn(session, { id, status, ...packet })))
    throw new RequestMalformedError('message.contextId is not the context of this task.');
  const body = answerIn(message, session.responder);
  const headers = changeHeaders({ agent: session.agentId, idempotency_key: message.messageId });
  try {
    // A repeated message gets the first answer again, whatever the status is now.
    return must(await session.call(routes.respondPacket, { params: { id }, body, headers }));
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'CONFLICT' || status === 'awaiting_human') throw error;
    throw new UnsupportedOperationError(
      `The task does not accept a message: its packet is ${status}. Only a packet that awaits input accepts one.`,
    );
  }
}

/** The agent for whom a message is: in its metadata, or the only one that the card names. */
function targetOf({ address: { agents } }: A2aSession, { target_agent, skill_id = target_agent }: Record<string, unknown>): string {
  if (typeof skill_id === 'string' && skill_id !== '') return skill_id;
  if (skill_id !== undefined) throw new RequestMalformedError('message.metadata.target_agent must be the id of an agent.');
  if (agents.length <= 1) return agents[0] ?? 'handoff';
  throw new RequestMalformedError(`message.metadata.target_agent is required: the id of an agent, such as ${agents[0]}.`);
}

/** The token of the page after a full last page of children: that of the root alone. */
const rootPage = 'root';

async function list(session: A2aSession, request: ListTasksRequest) {
  const { contextId, status, pageSize = 50, pageToken, historyLength, statusTimestampAfter, includeArtifacts = false } = request;
  if (!(pageSize >= 1 && pageSize <= maxPage)) throw new RequestMalformedError(`pageSize must be 1 to ${maxPage}.`);
  lengthOf(historyLength);
  const wanted = statuses.filter((each) => stateOf[each] === status);
  const query = {
    view: 'full',
    limit: pageSize,
    ...(wanted.length === 0 ? {} : { status: wanted.join(',') }),
    ...(contextId === '' ? {} : { parent_packet_id: contextId }),
    ...(pageToken === '' || pageToken === rootPage ? {} : { cursor: pageToken }),
    ...(statusTimestampAfter === undefined ? {} : { updated_after: statusTimestampAfter }),
  };
  const none = { tasks: [], nextPageToken: '', pageSize: 0, totalSize: 0 };
  if (status !== TaskState.TASK_STATE_UNSPECIFIED && wanted.length === 0) return none;
  const root = contextId === '' ? undefined : await read(session, contextId).catch(unlessKnown);
  if (root === undefined && contextId !== '') return none;
  const isRootWanted =
    root !== undefined &&
    (wanted.length === 0 || wanted.includes(root.status)) &&
    (statusTimestampAfter === undefined || Date.parse(root.updated_at) >= Date.parse(statusTimestampAfter));
  const page = must(await session.call(routes.listPackets, { query }));
  const packets = page.packets as unknown as Packet[];
  // The root was created before its children, so it stands on the last page.
  const isLast = page.next_cursor === null;
  const isRootNext = isRootWanted && isLast && packets.length === pageSize && pageToken !== rootPage;
  const children = pageToken === rootPage ? [] : packets;
  const shown = isRootWanted && (pageToken === rootPage || (isLast && !isRootNext)) ? [...children, root] : children;
  const tasks = await Promise.all(shown.map((packet) => written(session, packet, historyLength ?? 0)));
  return {
    tasks: includeArtifacts ? tasks : tasks.map((task) => ({ ...task, artifacts: [] })),
    nextPageToken: pageToken === rootPage ? '' : isRootNext ? rootPage : (page.next_cursor ?? ''),
    pageSize: tasks.length,
    totalSize: page.total + (isRootWanted ? 1 : 0),
  };
}

/** Cancels a task by a soft delete of its packet. */
async function cancel(session: A2aSession, id: string, refusalOf: (error: unknown) => Refusal): Promise<Task> {
  const packet = await read(session, id);
  if (finalStatuses.includes(packet.status)) throw new TaskNotCancelableError(`The task is over: its packet is ${packet.status}.`);
  if (packet.lease !== null && packet.claimed_by?.agent_id !== session.agentId)
    throw new TaskNotCancelableError(`${packet.claimed_by?.agent_id} holds a lease on the packet of this task.`);
  try {
    // A packet that has changed since, and may be completed, is not deleted.
    const headers = changeHeaders({ agent: session.agentId, if_revision: packet.revision });
    await session.call(routes.deletePacket, { params: { id }, headers });
  } catch (error) {
    const { code, message } = refusalOf(error);
    if (code === 'LEASE_LOST' || code === 'CONFLICT' || code === 'PRECONDITION_FAILED') throw new TaskNotCancelableError(message);
    throw error;
  }
  return written(session, await read(session, id));
}

function must<T>(value: T | undefined): T {
  if (value === undefined) throw new TaskNotFoundError('There is no task with this id.');
  return value;
}
