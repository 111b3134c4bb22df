import { isId } from '../../kit/uuid.ts';
import { present } from '../face/call.ts';
import { routes } from '../model/api.ts';
import { type Status, statuses } from '../model/common.ts';
import type { Packet } from '../model/packet.ts';
import { askedStatus, finalStatuses } from '../rules/packet-life.ts';
import { followedQuestion } from './questions.ts';
import { answerOf, changed, type ToolResult } from './results.ts';
import type { Session } from './session.ts';

/** A task of the Tasks extension (`io.modelcontextprotocol/tasks`), as it is when somebody reads it. */
export interface Task {
  readonly task: TaskFields & { readonly status: 'working' | 'completed' | 'cancelled' | 'failed' };
  /** The result of a completed task. */
  readonly result?: ToolResult;
  /** Why a task failed. */
  readonly error?: { readonly code: number; readonly message: string; readonly data: object };
}

interface TaskFields {
  readonly taskId: string;
  readonly statusMessage: string;
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  /** A task lives as long as its packet. */
  readonly ttlMs: null;
  readonly pollIntervalMs: number;
}

/**
 * What a task waits for. Its id carries all of it, so that it survives restarts and every instance can answer; it is
 * bound to its tenant because packets are.
 */
type Subject =
  | { readonly kind: 'ask'; readonly packetId: string; readonly questionId: string; readonly createdAt: string }
  | { readonly kind: 'wait'; readonly packetId: string; readonly wanted: readonly Status[]; readonly createdAt: string };

/** How often a client should read a task, in milliseconds. */
const pollIntervalMs = 2000;

/** The task that is completed by the answer to a question. */
export function askTask(packet: Packet, questionId: string): Task {
  const { id: packetId, updated_at: createdAt } = packet;
  return working({ kind: 'ask', packetId, questionId, createdAt }, packet);
}

/** The task that is completed when the packet has one of the statuses. */
export function waitTask(packet: Packet, wanted: readonly Status[]): Task {
  return working({ kind: 'wait', packetId: packet.id, wanted, createdAt: packet.updated_at }, packet);
}

/** The task as it is now; undefined for an id of no task. @throws ServiceError 404 when its packet is unknown or removed */
export async function taskOf(session: Session, taskId: string): Promise<Task | undefined> {
  const subject = subjectOf(taskId);
  if (subject === undefined) return undefined;
  const packet = present(await session.packet(subject.packetId));
  if (subject.kind === 'ask') return askedTask(session, subject, packet);
  const isOver = subject.wanted.includes(packet.status) || finalStatuses.includes(packet.status);
  return isOver ? completed(subject, packet, changed(packet)) : working(subject, packet);
}

/**
 * Cancels a task: withdraws its question if that is still open. A wait needs nothing.
 * @returns whether there is such a task
 */
export async function cancelTask(session: Session, taskId: string): Promise<boolean> {
  const subject = subjectOf(taskId);
  if (subject === undefined) return false;
  const { packetId: id } = subject;
  const packet = present(await session.packet(id));
  if (subject.kind !== 'ask' || packet.status !== askedStatus) return true;
  // What became of its question is withdrawn, and no other one.
  const { question_id } = await followedQuestion(session, id, subject.questionId);
  if (packet.hitl?.question_id === question_id) {
    const names = { agent: session.agentId, if_revision: packet.revision };
    await session.call(routes.withdrawQuestion, { params: { id }, names });
  }
  return true;
}

async function askedTask(session: Session, subject: Subject & { kind: 'ask' }, packet: Packet): Promise<Task> {
  const told = await followedQuestion(session, packet.id, subject.questionId);
  if (told.state === 'open') return working(subject, packet);
  if (told.state === 'withdrawn') return { task: { ...fieldsOf(subject, packet, 'The question was withdrawn.'), status: 'cancelled' } };
  const result = answerOf(packet, told);
  if (told.state === 'timed_out' || told.state === 'replaced') return withoutAnswer(subject, packet, told.state, result.text);
  return completed(subject, packet, result);
}

const fieldsOf = (subject: Subject, { updated_at }: Packet, statusMessage: string): TaskFields => ({
  taskId: idOf(subject),
  statusMessage,
  createdAt: subject.createdAt,
  lastUpdatedAt: updated_at,
  ttlMs: null,
  pollIntervalMs,
});

function working(subject: Subject, packet: Packet): Task {
  const awaited = subject.kind === 'ask' ? 'the answer of a person' : `the status ${subject.wanted.join(' or ')}`;
  return { task: { ...fieldsOf(subject, packet, `Packet ${packet.id} awaits ${awaited}.`), status: 'working' } };
}

/** A question that nobody can answer any more. */
function withoutAnswer(subject: Subject, packet: Packet, reason: string, message: string): Task {
  return { task: { ...fieldsOf(subject, packet, message), status: 'failed' }, error: { code: -32000, message, data: { reason } } };
}

function completed(subject: Subject, packet: Packet, result: ToolResult): Task {
  return { task: { ...fieldsOf(subject, packet, `Packet ${packet.id} is ${packet.status}.`), status: 'completed' }, result };
}

function idOf(subject: Subject): string {
  const about = subject.kind === 'ask' ? subject.questionId : subject.wanted.join(',');
  return Buffer.from([subject.kind, subject.packetId, about, subject.createdAt].join(' ')).toString('base64url');
}

/** Parses a task id, which clients can forge; undefined when it is none. */
function subjectOf(taskId: string): Subject | undefined {
  if (taskId.length > 1000) return undefined;
  const [kind, packetId = '', about = '', createdAt = '', ...more] = Buffer.from(taskId, 'base64url').toString().split(' ');
  if (!isId(packetId) || more.length > 0 || Number.isNaN(Date.parse(createdAt))) return undefined;
  if (kind === 'ask') return isId(about) ? { kind, packetId, questionId: about, createdAt } : undefined;
  const wanted = about.split(',').filter((word): word is Status => (statuses as readonly string[]).includes(word));
  return kind === 'wait' && wanted.length > 0 ? { kind, packetId, wanted, createdAt } : undefined;
}
