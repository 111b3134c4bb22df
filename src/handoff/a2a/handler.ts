import {
  type AgentCard,
  type CancelTaskRequest,
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
import { isId } from '../../kit/uuid.ts';
import { present } from '../face/call.ts';
import type { PushConfig } from '../model/a2a.ts';
import type { Agent } from '../model/agent.ts';
import { routes } from '../model/api.ts';
import { type Status, statuses } from '../model/common.ts';
import type { Packet, PacketSummary } from '../model/packet.ts';
import { askedStatus, finalStatuses } from '../rules/packet-life.ts';
import { cardOf, type SkilledAgent } from './card.ts';
import { answerIn, decisionIn, packetOf, questionIn, requireMessage } from './message.ts';
import { artifactsOnce, artifactText, statusText, taskText } from './printed.ts';
import type { A2aSession, View } from './session.ts';
import { stateOf, taskOf } from './task.ts';

/** The key of the session in the state of a call. */
export const sessionKey = 'session';
const sessionOf = ({ state }: ServerCallContext) => state.get(sessionKey) as A2aSession;

/** The statuses that end a blocking message: the task has ended, or waits for input. */
const settled: readonly Status[] = [...finalStatuses, askedStatus];

const maxPage = 100;

/** The most characters of the packets of a page, which is printed in one go. */
const maxRead = 4 * 1024 * 1024;

/** When a refused request may be repeated, as details of an error have it. */
const waitOf = ({ headers }: ServiceError): { retryAfter?: string } => {
  const retryAfter = headers['Retry-After'];
  return retryAfter === undefined ? {} : { retryAfter };
};

/** Makes the handler of A2A's methods. Each calls operations of the API. */
export function createA2aHandler({ refusalOf }: { refusalOf: (error: unknown) => ServiceError }): A2ARequestHandler {
  /** Calls operations, and turns a refusal of the API into the error of A2A with the same sentence. */
  async function refusing<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof A2AError) throw error;
      const refusal = refusalOf(error);
      const { code, message, faults } = refusal;
      if (code === 'NOT_FOUND') throw new TaskNotFoundError(message);
      if (code === 'CONTRACT_VIOLATION')
        throw new RequestMalformedError({
          message: [message, ...faults.slice(1).map(({ detail }) => detail)].join('\n'),
          metadata: { code },
        });
      if (code === 'VALIDATION_ERROR' || code === 'PAYLOAD_TOO_LARGE') throw new RequestMalformedError(message);
      if (code === 'SERVER_ERROR' || code === 'SERVICE_UNAVAILABLE' || code === 'RATE_LIMITED')
        throw new A2AError({ message, metadata: { code, ...waitOf(refusal) } });
      throw new UnsupportedOperationError({ message, metadata: { code } });
    }
  }

  // Sends by the session, and yields nothing but that it has sent, since the generators of the SDK keep what they have yielded
  // last. Between events a stream keeps no packet.
  async function* stream(first: () => Promise<View>, session: A2aSession, historyLength?: number): AsyncGenerator<StreamResponse, void> {
    let shown = await refusing(async () => begun(await first(), session, historyLength));
    yield sent;
    while (!finalStatuses.includes(shown.status) && !session.signal.aborted) {
      const { taskId, revision } = shown;
      await refusing(() => session.changed(taskId, (stamp) => stamp.revision > revision));
      const before = shown;
      shown = await refusing(async () => continued(await viewed(session, taskId), session, before));
      yield sent;
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
        return cardOf(address, await Promise.all((found?.agents ?? []).map((agent) => skilled(call, agent))));
      }),
    sendMessage: (request, context) =>
      refusing(async () => {
        const session = sessionOf(context);
        const { id, status } = await send(session, request);
        const isDone = request.configuration?.returnImmediately === true || settled.includes(status);
        if (!isDone) await session.changed(id, (stamp) => (settled as readonly string[]).includes(stamp.status));
        return written(await viewed(session, id), request.configuration?.historyLength);
      }),
    sendMessageStream(request, context) {
      const session = sessionOf(context);
      const sending = async () => viewed(session, (await send(session, request)).id);
      return stream(sending, session, lengthOf(request.configuration?.historyLength));
    },
    resubscribe({ id }, context) {
      const session = sessionOf(context);
      return stream(async () => {
        const view = await viewed(session, id);
        const { status } = view.packet;
        if (finalStatuses.includes(status)) throw new UnsupportedOperationError(`The task has ended: its packet is ${status}.`);
        return view;
      }, session);
    },
    getTask: ({ id, historyLength }, context) => refusing(async () => written(await viewed(sessionOf(context), id), historyLength)),
    listTasks: (request, context) => refusing(() => list(sessionOf(context), request)),
    cancelTask: (request, context) => refusing(() => cancel(sessionOf(context), request, refusalOf)),
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

/** Stands for what a stream has sent by its session. */
const sent: StreamResponse = { payload: undefined };

/** What a stream has sent of a task. */
interface Shown {
  readonly taskId: string;
  readonly contextId: string;
  readonly revision: number;
  readonly status: Status;
  /** The digest of each artifact, by its id. */
  readonly artifacts: ReadonlyMap<string, string>;
}

/** Sends a task as it is. */
function begun({ packet, root: contextId }: View, { send }: A2aSession, historyLength: number | undefined): Shown {
  send(taskText(packet, contextId, historyLength));
  const { id: taskId, revision, status } = packet;
  return { taskId, contextId, revision, status, artifacts: digestsOf(packet) };
}

/** Sends what has changed since. */
function continued({ packet }: View, { send }: A2aSession, before: Shown): Shown {
  const { revision, status } = packet;
  const { contextId, artifacts: sentBefore } = before;
  if (revision === before.revision) return before;
  // A changed artifact is sent whole, in place of what was sent of it (`append` is false).
  for (const { artifact, digest } of artifactsOnce(packet))
    if (sentBefore.get(artifact.artifactId) !== digest) send(artifactText(packet, contextId, artifact));
  if (status !== before.status) send(statusText(packet, contextId));
  return { ...before, revision, status, artifacts: digestsOf(packet) };
}

/** An agent with what its contract says, for the card. */
async function skilled(call: A2aSession['call'], { agent_id: id, contract }: Agent): Promise<SkilledAgent> {
  const found = contract === null ? undefined : await call(routes.getContract, { params: { agent_id: id } }).catch(unlessKnown);
  return { id, ...found };
}

/** Undefined, if the error says that there is no such packet or contract. */
function unlessKnown(error: unknown): undefined {
  if (!(error instanceof TaskNotFoundError) && !(error instanceof ServiceError && error.code === 'NOT_FOUND')) throw error;
}

/** A packet. @throws A2AError for an unknown id */
const viewed = async ({ view }: A2aSession, id: string): Promise<View> =>
  knownTask(isId(id.toLowerCase()) ? await view(id.toLowerCase()) : undefined);

const read = async (session: A2aSession, id: string): Promise<Packet> => (await viewed(session, id)).packet;

const digestsOf = (packet: Packet): ReadonlyMap<string, string> =>
  new Map(artifactsOnce(packet).map(({ artifact, digest }) => [artifact.artifactId, digest]));

const pushOf = (taskId: string, config: PushConfig): TaskPushNotificationConfig => ({ ...config, tenant: '', taskId });

async function pushesOf(session: A2aSession, taskId: string): Promise<TaskPushNotificationConfig[]> {
  const { id } = await read(session, taskId);
  return (await session.pushes.list(id)).map((config) => pushOf(id, config));
}

const written = ({ packet, root }: View, historyLength?: number): Task => taskOf(packet, root, lengthOf(historyLength));

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
  const names = { agent: session.agentId, idempotency_key: message.messageId };
  if (message.contextId === '') return present(await session.call(routes.createPacket, { body, names }));
  const root = await read(session, message.contextId);
  if (root.parent_packet_id !== null) throw new TaskNotFoundError('There is no context with this id.');
  return present(await session.call(routes.chainPacket, { params: { id: root.id }, body, names }));
}

/** The token of a lease in the metadata of a request. */
const leaseTokenIn = (metadata: Readonly<Record<string, unknown>> | undefined): string | undefined => {
  const token = metadata?.lease_token;
  return typeof token === 'string' ? token : undefined;
};

/** Asks a person about a task, for its worker. */
async function ask(session: A2aSession, { messageId, metadata }: Message, id: string, body: Record<string, unknown>): Promise<Packet> {
  const names = { agent: session.agentId, idempotency_key: messageId, lease_token: leaseTokenIn(metadata) };
  return present(await session.call(routes.askQuestion, { params: { id }, body, names }));
}

/** Answers the question of a task, or asks one. */
async function answer(session: A2aSession, message: Message): Promise<Packet> {
  const { packet, root } = await viewed(session, message.taskId);
  const { id, status } = packet;
  if (message.contextId !== '' && message.contextId !== root)
    throw new RequestMalformedError('message.contextId is not the context of this task.');
  const asked = questionIn(message);
  if (asked !== undefined) return ask(session, message, id, asked);
  const isAction = packet.hitl?.action !== undefined;
  const body = isAction ? decisionIn(message, session.responder) : answerIn(message, session.responder);
  const names = { agent: session.agentId, idempotency_key: message.messageId };
  try {
    // A repeated message gets the first answer again, whatever the status is now.
    return present(await session.call(routes.respondPacket, { params: { id }, body, names }));
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'CONFLICT' || status === askedStatus) throw error;
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
  if (status === TaskState.UNRECOGNIZED) throw new RequestMalformedError('status must be a state of a task, such as TASK_STATE_WORKING.');
  if (statusTimestampAfter !== undefined && Number.isNaN(Date.parse(statusTimestampAfter)))
    throw new RequestMalformedError('statusTimestampAfter must be an ISO 8601 date-time.');
  const wanted = statuses.filter((each) => stateOf[each] === status);
  const query = {
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
  const page = present(await session.call(routes.listPackets, { query }));
  const packets = page.packets;
  // The root was created before its children, so it stands on the last page.
  const isLast = page.next_cursor === null;
  const isRootNext = isRootWanted && isLast && packets.length === pageSize && pageToken !== rootPage;
  const children = pageToken === rootPage ? [] : packets;
  const shown = isRootWanted && (pageToken === rootPage || (isLast && !isRootNext)) ? [...children, root] : children;
  const tasks: Task[] = [];
  let length = 0;
  const isBrief = !includeArtifacts && (historyLength ?? 0) === 0;
  const roots = await session.rootsOf(shown.map(({ id }) => id));
  for (const shownPacket of shown) {
    const { id } = shownPacket;
    // The content is read only for what shows it: artifacts, messages, and why a task failed.
    const view = isBrief && shownPacket.status !== 'failed' ? briefView(shownPacket, roots.get(id)) : await session.view(id);
    if (view === undefined) continue;
    length += view.length;
    if (length > maxRead && tasks.length > 0) throw tooLarge(tasks.length);
    session.hold(view.length);
    const task = written(view, historyLength ?? 0);
    tasks.push(includeArtifacts ? task : { ...task, artifacts: [] });
  }
  return {
    tasks,
    nextPageToken: pageToken === rootPage ? '' : isRootNext ? rootPage : (page.next_cursor ?? ''),
    pageSize: tasks.length,
    totalSize: page.total + (isRootWanted ? 1 : 0),
  };
}

/** A packet as its summary shows it. */
function briefView(summary: Packet | PacketSummary, root: string | undefined): View | undefined {
  if (root === undefined) return undefined;
  const context = { summary: '', conversation_state: [], artifacts: [], custom: {} };
  const actions = { pending: [], completed: [], failed: [] };
  return { packet: { ...summary, context, actions, decisions: [], dependencies: [] }, root, length: 0 };
}

/** The error that a page of the API of this size gets. */
const tooLarge = (fitting: number) =>
  new RequestMalformedError(`The packets of this page have more than ${maxRead} bytes together. Use pageSize=${fitting}.`);

/** Cancels a task by a soft delete of its packet. */
async function cancel(
  session: A2aSession,
  { id, metadata }: CancelTaskRequest,
  refusalOf: (error: unknown) => ServiceError,
): Promise<Task> {
  const packet = await read(session, id);
  if (finalStatuses.includes(packet.status)) throw new TaskNotCancelableError(`The task has ended: its packet is ${packet.status}.`);
  try {
    // A packet that has changed since, and may be completed, is not deleted.
    const names = { agent: session.agentId, if_revision: packet.revision, lease_token: leaseTokenIn(metadata) };
    await session.call(routes.deletePacket, { params: { id }, names });
  } catch (error) {
    const { code, message } = refusalOf(error);
    if (code === 'LEASE_LOST' && packet.lease !== null)
      throw new TaskNotCancelableError(
        `${packet.claimed_by?.agent_id} holds a lease on the packet; its token goes in metadata.lease_token.`,
      );
    if (code === 'LEASE_LOST' || code === 'CONFLICT' || code === 'PRECONDITION_FAILED') throw new TaskNotCancelableError(message);
    throw error;
  }
  return written(await viewed(session, id));
}

function knownTask(view: View | undefined): View {
  if (view === undefined) throw new TaskNotFoundError('There is no task with this id.');
  return view;
}
