import type { OccurrenceArguments, OccurrenceData, OccurrenceName, Subscribed } from '../model/occurrence.ts';
import type { Packet, PacketSummary } from '../model/packet.ts';
import { groupPrefix, isSamePerson } from '../model/people.ts';
import { cut } from './cut.ts';
import { claimableStatus, finalStatuses } from './packet-life.ts';
import { latestQuestion } from './question-state.ts';
import { heldUntil } from './times.ts';

/** An entry of the trail, with the packet as it was after it. */
export interface TrailEvent {
  readonly event_type: string;
  /** The fields that an update changed, and the question that it replaced. */
  readonly details: { readonly fields?: readonly unknown[]; readonly replaced_question_id?: unknown };
  readonly packet: PacketSummary;
}

/** The entries after which a packet may wait to be claimed. */
const freeing: ReadonlySet<string> = new Set(['created', 'released', 'lease_expired', 'available', 'question_withdrawn', 'hitl_responded']);

function isWaiting({ event_type, details, packet }: TrailEvent): boolean {
  if (packet.status !== claimableStatus || heldUntil(packet) !== null) return false;
  return freeing.has(event_type) || (event_type === 'updated' && details.fields?.includes('not_before') === true);
}

function isAsked({ event_type, details, packet }: TrailEvent): boolean {
  if (event_type === 'awaiting_human' || event_type === 'approval_escalated') return true;
  if (event_type === 'updated') return details.replaced_question_id !== undefined;
  // The approval that ended a step: the people of the next one are asked.
  return event_type === 'approval_given' && packet.hitl?.step?.given === 0;
}

const occurs: Readonly<Record<OccurrenceName, (event: TrailEvent) => boolean>> = {
  'packet.waiting': isWaiting,
  'question.answered': ({ event_type }) => event_type === 'hitl_responded',
  'question.asked': isAsked,
  'packet.ended': ({ event_type }) => (finalStatuses as readonly string[]).includes(event_type),
  'packet.overdue': ({ event_type }) => event_type === 'overdue',
};

/** Whether a question is put to a person or a group by name; members of a group are not looked up. */
function isPutTo({ hitl }: PacketSummary, name: string): boolean {
  const named = [...(hitl?.responder === undefined ? [] : [hitl.responder]), ...(hitl?.step?.from ?? [])];
  return named.some((one) => isSamePerson(one, name));
}

const fits: Readonly<Record<OccurrenceName, (packet: PacketSummary, args: OccurrenceArguments) => boolean>> = {
  'packet.waiting': ({ metadata: { target_agent, tags, priority } }, args) =>
    target_agent.id === args.agent_id &&
    (args.tags === undefined || args.tags.some((tag) => tags.includes(tag))) &&
    (args.priorities === undefined || args.priorities.includes(priority)),
  'question.answered': ({ id, hitl, metadata }, { packet_id, agent_id }) =>
    isIt(packet_id, id) && isIt(agent_id, hitl?.asked_by?.agent_id ?? metadata.source_agent.id),
  'question.asked': (packet, { responder, group }) =>
    (responder === undefined || isPutTo(packet, responder)) && (group === undefined || isPutTo(packet, `${groupPrefix}${group}`)),
  'packet.ended': ({ id, metadata }, { packet_id, source_agent }) => isIt(packet_id, id) && isIt(source_agent, metadata.source_agent.id),
  'packet.overdue': ({ metadata }, { agent_id }) => isIt(agent_id, metadata.target_agent.id),
};

const isIt = (wanted: string | undefined, value: string): boolean => wanted === undefined || wanted === value;

/** Whether an entry of the trail is what a client subscribes to. */
export const isSubscribed = ({ name, arguments: args }: Subscribed, event: TrailEvent): boolean =>
  occurs[name](event) && fits[name](event.packet, args);

/** Whether an event still is so when it is sent: nobody is woken for a packet that was claimed since, or a question that was answered. */
export function stillHolds(name: OccurrenceName, packet: Packet, now: Date): boolean {
  if (name === 'packet.waiting') {
    const held = heldUntil(packet);
    return packet.status === claimableStatus && (held === null || Date.parse(held) <= now.getTime());
  }
  return name !== 'question.asked' || latestQuestion(packet, now).state === 'open';
}

const maxText = 1000;

/** The payload of an event about a packet as it is now. */
export function occurrenceData(name: OccurrenceName, packet: Packet, brief: string, now: Date): OccurrenceData {
  const { id, status, metadata, context, due_at } = packet;
  const { source_agent, target_agent, priority, tags } = metadata;
  return {
    ...{ packet_id: id, status, priority, tags, source_agent: source_agent.id, target_agent: target_agent.id },
    ...(due_at === undefined ? {} : { due_at }),
    summary: cut(context.summary, maxText),
    ...(name.startsWith('question.') ? questionOf(packet, now) : {}),
    brief,
  };
}

function questionOf(packet: Packet, now: Date): Pick<OccurrenceData, 'question'> {
  const latest = latestQuestion(packet, now);
  if (latest.state === 'none' || latest.state === 'draft') return {};
  const { question, asked, answer } = latest;
  const told = answer === null ? {} : { response: cut(String(answer.response), maxText), responded_by: answer.responded_by };
  return { question: { question_id: asked.question_id, question: cut(question.question, maxText), ...told } };
}
