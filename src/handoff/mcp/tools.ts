import type { Static, TObject } from 'typebox';
import { readJson } from '../../kit/json.ts';
import { beginningOf } from '../../kit/wording.ts';
import { present } from '../face/call.ts';
import { routes } from '../model/api.ts';
import type { Scope } from '../model/common.ts';
import type { Packet } from '../model/packet.ts';
import { requestPermission } from './permission.ts';
import { answeredQuestion, askedIn } from './questions.ts';
import { answerOf, changed, type ToolResult, toldOf } from './results.ts';
import { defaultLeaseSeconds, inputs, maxToolSeconds, outputs } from './schemas.ts';
import { agentOf, type Session } from './session.ts';
import { askTask, type Task, waitTask } from './tasks.ts';
import { briefText, fenced } from './text.ts';

interface Hints {
  readonly readOnlyHint?: true;
  readonly idempotentHint?: true;
  readonly destructiveHint: boolean;
}

/** A tool: its description, schemas and hints, and what it does. */
export interface Tool {
  readonly title: string;
  readonly description: string;
  readonly input: TObject;
  readonly output: TObject;
  readonly annotations: Hints;
  /** The scopes that suffice for it, if several do. */
  readonly scopes?: readonly Scope[];
  run(args: never, session: Session): Promise<ToolResult | Task>;
}

type Inputs = typeof inputs;
type Args<Name extends keyof Inputs> = Static<Inputs[Name]>;

const reads: Hints = { readOnlyHint: true, idempotentHint: true, destructiveHint: false };
const writes: Hints = { destructiveHint: false };
const repeats: Hints = { idempotentHint: true, destructiveHint: false };
const ends: Hints = { idempotentHint: true, destructiveHint: true };

function tool<Name extends keyof Inputs>(
  name: Name,
  row: Omit<Tool, 'input' | 'run'> & { run(args: Args<Name>, session: Session): Promise<ToolResult | Task> },
): Tool {
  return { ...row, input: inputs[name] };
}

/** The tools, by name. Each carries out operations of the API, which validates, authorizes and records them. */
export const tools: Readonly<Record<keyof Inputs, Tool>> = {
  hand_over: tool('hand_over', {
    title: 'Hand work over',
    description:
      'Hands work to another agent as a packet, or continues a packet with `parent_packet_id`. The other agent gets the summary, decisions, actions and artifacts; write them for a reader who knows nothing of your conversation. `get_contract` says what the other agent asks for.',
    output: outputs.packet,
    annotations: writes,
    run: async (args, { call, ...session }) => {
      const agent = agentOf({ call, ...session }, args.agent_id);
      const { target_agent, target_agent_name = target_agent, parent_packet_id, summary, priority, tags, subjects } = args;
      const { conversation_state, artifacts, custom, decisions, actions, dependencies, not_before, due_at } = args;
      const body = {
        parent_packet_id,
        metadata: {
          source_agent: { id: agent, name: args.agent_name ?? agent, framework: args.framework ?? 'mcp' },
          target_agent: { id: target_agent, name: target_agent_name },
          ...{ priority, tags, subjects },
        },
        context: { summary, conversation_state, artifacts, custom },
        ...{ decisions, actions, dependencies, not_before, due_at },
      };
      const { idempotency_key } = args;
      const packet = present(await call(routes.createPacket, { body: withoutUndefined(body), names: { agent, idempotency_key } }));
      return { structured: packet, text: `Packet ${packet.id} waits for ${JSON.stringify(target_agent)}.` };
    },
  }),

  claim_next: tool('claim_next', {
    title: 'Claim the next packet',
    description:
      'Takes the next packet that waits for you: the highest priority first, then the oldest, or with `order: due` the one that is due first. With `wait_seconds` it waits for one. The claim is a lease that ends by itself: every later call for the packet renews it.',
    output: outputs.claimed,
    annotations: writes,
    run: async ({ idempotency_key, lease_seconds, wait_seconds: asked = 0, ...args }, session) => {
      const agent_id = agentOf(session, args.agent_id);
      const names = { agent: agent_id, idempotency_key };
      const wait_seconds = Math.min(asked, maxToolSeconds);
      const packet = await session.call(routes.claimNext, { body: { ...args, ...leaseOf(lease_seconds), wait_seconds, agent_id }, names });
      if (packet === undefined) return { structured: { packet: null }, text: 'No packet waits for you now.' };
      return { structured: { packet }, text: await claimedText(session, packet) };
    },
  }),

  claim: tool('claim', {
    title: 'Claim a packet',
    description: 'Takes one packet by its id. If another agent holds it, the error names the holder.',
    output: outputs.packet,
    annotations: writes,
    run: async ({ packet_id: id, idempotency_key, lease_seconds, ...args }, session) => {
      const agent_id = agentOf(session, args.agent_id);
      const names = { agent: agent_id, idempotency_key };
      const packet = present(
        await session.call(routes.claimPacket, { params: { id }, body: { ...args, ...leaseOf(lease_seconds), agent_id }, names }),
      );
      return { structured: packet, text: await claimedText(session, packet) };
    },
  }),

  renew_lease: tool('renew_lease', {
    title: 'Renew a lease',
    description: 'Restarts the time of a lease from now. Call it before the lease expires while you still work on the packet.',
    output: outputs.lease,
    annotations: repeats,
    run: async ({ packet_id: id, agent_id, lease_token, ...body }, session) => {
      const names = { agent: actingAgent(session, agent_id), lease_token };
      const answer = present(await session.call(routes.renewLease, { params: { id }, body, names }));
      return { structured: answer, text: `The lease expires at ${answer.lease.expires_at}.` };
    },
  }),

  release: tool('release', {
    title: 'Release a packet',
    description: 'Gives a packet back without completing it, so that another agent can claim it.',
    output: outputs.packet,
    annotations: repeats,
    run: async ({ packet_id: id, agent_id, lease_token }, session) => {
      const agent = agentOf(session, agent_id);
      return changed(await session.call(routes.releasePacket, { params: { id }, names: { agent, lease_token } }));
    },
  }),

  update: tool('update', {
    title: 'Update a packet',
    description:
      'Records progress in a packet that you hold: decisions, actions (an action in `completed` or `failed` leaves `pending`), context and dependencies, merged by `id`. `status: in_progress` shows that you have begun.',
    output: outputs.packet,
    annotations: repeats,
    run: (args, session) => patch(args, session, (({ packet_id, agent_id, lease_token, if_revision, ...body }) => body)(args)),
  }),

  ask_human: tool('ask_human', {
    title: 'Ask a person',
    description:
      'Asks a person and waits for the answer. The packet awaits the answer; nobody else can work on it meanwhile. If the person has not answered yet, call `get_answer` later.',
    output: outputs.answer,
    annotations: writes,
    run: async (args, session) => {
      const { packet_id: id, agent_id, lease_token, if_revision, wait_seconds = maxToolSeconds, ...body } = args;
      const names = { agent: actingAgent(session, agent_id), lease_token, if_revision };
      const packet = present(await session.call(routes.askQuestion, { params: { id }, body: withoutUndefined(body), names }));
      const questionId = await askedIn(session, packet, args.key);
      if (session.takesTasks) return askTask(packet, questionId);
      const isLatest = packet.hitl?.question_id === questionId;
      if (wait_seconds === 0 && isLatest) return answerOf(packet, toldOf(packet, session.now()));
      const told = await answeredQuestion(session, packet, questionId, wait_seconds);
      return answerOf(present(await session.packet(id)), told);
    },
  }),

  get_answer: tool('get_answer', {
    title: 'Get the answer of a person',
    description:
      'The answer to the last question of a packet, or to one by its id. Waits for the answer if the person has not given it yet.',
    output: outputs.answer,
    annotations: reads,
    run: async ({ packet_id: id, question_id, wait_seconds = maxToolSeconds }, session) => {
      const packet = present(await session.packet(id));
      await keepLease(session, id, packet);
      const questionId = question_id ?? packet.hitl?.question_id ?? null;
      if (questionId === null) return answerOf(packet, toldOf(packet, session.now()));
      const told = await answeredQuestion(session, packet, questionId, wait_seconds);
      return answerOf(present(await session.packet(id)), told);
    },
  }),

  complete: tool('complete', {
    title: 'Complete a packet',
    description: 'Ends a packet successfully. Give the results of the actions in `actions.completed`.',
    output: outputs.packet,
    annotations: ends,
    run: (args, session) => patch(args, session, { status: 'completed', actions: args.actions, decisions: args.decisions }),
  }),

  fail: tool('fail', {
    title: 'Fail a packet',
    description: 'Ends a packet that cannot be completed. The reason is kept in `actions.failed`.',
    output: outputs.packet,
    annotations: ends,
    run: (args, session) =>
      patch(args, session, {
        status: 'failed',
        actions: { failed: [{ id: 'failure', description: 'The work on this packet', error: args.reason }] },
      }),
  }),

  wait_for_packet: tool('wait_for_packet', {
    title: 'Wait for a packet',
    description: 'Waits until a packet has one of the statuses, for example until the work you handed over is completed.',
    output: outputs.packet,
    annotations: reads,
    run: async ({ packet_id: id, statuses: wanted, wait_seconds = maxToolSeconds }, session) => {
      const { call, takesTasks } = session;
      const packet = present(await session.packet(id));
      await keepLease(session, id, packet);
      if (wanted.includes(packet.status)) return changed(packet);
      if (takesTasks) return waitTask(packet, wanted);
      return changed(await call(routes.getPacket, { params: { id }, query: { wait_seconds, until: wanted.join(',') } }));
    },
  }),

  find_packets: tool('find_packets', {
    title: 'Find packets',
    description: 'Lists packets, newest first, or searches them by `text`, the best match first.',
    output: outputs.page,
    annotations: reads,
    run: async ({ text, statuses: wanted, tags, limit = 10, ...rest }, { call }) => {
      const query = withoutUndefined({ ...rest, q: text, limit, status: wanted?.join(','), tags: tags?.join(',') });
      const page = present(text === undefined ? await call(routes.listPackets, { query }) : await call(routes.searchPackets, { query }));
      const lines = page.packets.map(({ id, status, metadata, context }) =>
        [id, status, `for ${metadata.target_agent.id}`, beginningOf(context.summary, 200)].join(' | '),
      );
      const more = page.next_cursor === null ? '' : ' There are more: pass next_cursor as cursor.';
      return {
        structured: page,
        text: `${page.packets.length} packets.${more}${lines.length === 0 ? '' : `\n${fenced(lines.join('\n'))}`}`,
      };
    },
  }),

  get_packet: tool('get_packet', {
    title: 'Get a packet',
    description: 'The whole packet. `get_brief` is shorter and includes what came before.',
    output: outputs.packet,
    annotations: reads,
    run: async ({ packet_id: id }, session) => {
      const packet = present(await session.packet(id));
      await keepLease(session, id, packet);
      return { structured: packet, text: fenced(JSON.stringify(packet)) };
    },
  }),

  get_brief: tool('get_brief', {
    title: 'Get a brief of a packet',
    description: 'What you need to know of a packet and its ancestors, in a limited number of characters.',
    output: outputs.brief,
    annotations: reads,
    run: async ({ packet_id: id, ...query }, session) => {
      const brief = present(await session.call(routes.packetBrief, { params: { id }, query }));
      await keepLease(session, id);
      return { structured: brief, text: fenced(briefText(brief)) };
    },
  }),

  get_history: tool('get_history', {
    title: 'Get the history of a packet',
    description: 'Everything that happened to a packet, oldest first.',
    output: outputs.history,
    annotations: reads,
    run: async ({ packet_id: id }, session) => {
      const history = present(await session.call(routes.packetHistory, { params: { id } }));
      await keepLease(session, id);
      const lines = history.events.map(({ timestamp, event_type, actor }) => `${timestamp} ${event_type} by ${actor}`);
      return { structured: history, text: fenced(lines.join('\n')) };
    },
  }),

  request_approval: tool('request_approval', {
    title: 'Ask for the approval of a tool call',
    description:
      'Asks people, or the rules of the service, whether a tool call may be executed, and waits for the decision: for the permission prompt of a coding agent. The text of the result is the JSON of the decision.',
    output: outputs.permission,
    annotations: writes,
    run: (args, session) => requestPermission(session, args),
  }),

  get_contract: tool('get_contract', {
    title: "Get an agent's contract",
    description:
      'What a packet for an agent must contain. Call it before hand_over: a packet that does not satisfy the contract is refused.',
    output: outputs.contract,
    annotations: reads,
    scopes: ['read', 'work'],
    run: async ({ target_agent: agent_id }, { call }) => {
      const none = { agent_id, version: null, schema: null, description: null, examples: [] };
      const found = await call(routes.getContract, { params: { agent_id } }).catch(unlessNone);
      if (found === undefined) return { structured: none, text: `${JSON.stringify(agent_id)} has no contract: any packet will do.` };
      const { version, schema, description, examples } = found;
      const text = `The contract of ${JSON.stringify(agent_id)}, version ${version}:`;
      return { structured: found, text: `${text}\n${fenced(JSON.stringify({ description, schema, examples }))}` };
    },
  }),
};

/** Undefined, if the error says that there is no such thing. */
function unlessNone(error: unknown): undefined {
  if ((error as { code?: unknown }).code !== 'NOT_FOUND') throw error;
}

/** The scopes of which a key needs one for a tool. */
export const scopesOf = ({ annotations, scopes = [annotations.readOnlyHint ? 'read' : 'work'] }: Tool): readonly Scope[] => scopes;

/** The lease of a claim: a limited one, unless the call asks for a claim that does not expire. */
const leaseOf = (lease_seconds = defaultLeaseSeconds) => (lease_seconds === 0 ? {} : { lease_seconds });

/** The agent that acts, if the connection or the call names it. */
const actingAgent = (session: Session, given: string | undefined): string | undefined =>
  given === undefined && session.agentId === undefined ? undefined : agentOf(session, given);

/** Renews the lease of a packet that its holder reads. */
async function keepLease(session: Session, id: string, found?: Packet): Promise<void> {
  const { agentId: agent } = session;
  if (agent === undefined) return;
  // What the agent asked for is read already: a lease that can't be renewed, or a key that may only read, changes nothing of it.
  const packet = found ?? (await session.packet(id).catch(() => undefined));
  if (!packet?.lease?.expires_at || packet.claimed_by?.agent_id !== agent) return;
  await session.call(routes.renewLease, { params: { id }, body: {}, names: { agent } }).catch(() => undefined);
}

type Change = { packet_id: string; agent_id?: string; lease_token?: string; if_revision?: number };

/** Changes a packet by PATCH. */
async function patch(args: Change, session: Session, body: Record<string, unknown>): Promise<ToolResult> {
  const { packet_id: id, agent_id, lease_token, if_revision } = args;
  const names = { agent: actingAgent(session, agent_id), lease_token, if_revision };
  return changed(await session.call(routes.patchPacket, { params: { id }, body: withoutUndefined(body), names }));
}

/** The text for the agent that has claimed a packet: how to go on, and the brief. */
async function claimedText({ call }: Session, { id, lease }: Packet): Promise<string> {
  // The claim is done, and its token must reach the agent even if the brief can't be read.
  const brief = await call(routes.packetBrief, { params: { id } }).catch(() => undefined);
  const token =
    lease?.token === undefined
      ? ''
      : ` Its lease expires at ${lease.expires_at}; every call for the packet renews it. Its lease_token is ${lease.token}.`;
  return `You hold packet ${id}.${token}${brief === undefined ? '' : `\n${fenced(briefText(brief))}`}`;
}

/** The value without its undefined fields, at any depth. */
function withoutUndefined(value: Record<string, unknown>): Record<string, unknown> {
  return readJson(JSON.stringify(value)) as Record<string, unknown>;
}
