import type { StreamEvent, StreamReset } from '../../client/client.ts';
import type { Packet, PacketSummary } from '../../model/packet.ts';
import type { Column } from './table.ts';
import { pairLines } from './table.ts';
import { type Colour, printable } from './text.ts';

const colours: Record<string, Colour> = {
  created: 'blue',
  claimed: 'cyan',
  in_progress: 'cyan',
  awaiting_human: 'yellow',
  completed: 'green',
  failed: 'red',
  expired: 'grey',
};

type Listed = Packet | PacketSummary;
const minute = (moment: string) => `${moment.slice(0, 10)} ${moment.slice(11, 16)}`;

/** The columns of a list of packets, most important first. */
export const packetColumns: readonly Column<Listed>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'STATUS', value: ({ status }) => status, colour: ({ status }) => colours[status] },
  { title: 'PRIORITY', value: ({ metadata }) => metadata.priority },
  { title: 'SUMMARY', value: ({ context }) => context.summary, least: 12 },
  { title: 'FROM', value: ({ metadata }) => metadata.source_agent.id, least: 8 },
  { title: 'TO', value: ({ metadata }) => metadata.target_agent.id, least: 8 },
  { title: 'CREATED', value: ({ created_at }) => minute(created_at) },
];

/** The columns of search results, with the snippet instead of the summary. */
export const hitColumns: readonly Column<Listed & { snippet: string }>[] = [
  ...packetColumns.slice(0, 3),
  { title: 'FOUND', value: ({ snippet }) => snippet, least: 12 },
  ...packetColumns.slice(4),
];

/** The columns of a list of open questions. */
export const awaitingColumns: readonly Column<Listed>[] = [
  packetColumns[0]!,
  { title: 'UNTIL', value: ({ hitl }) => (hitl?.expires_at ? minute(hitl.expires_at) : null) },
  { title: 'QUESTION', value: ({ hitl }) => hitl?.question, least: 12 },
  { title: 'HELD BY', value: ({ claimed_by }) => claimed_by?.agent_id, least: 8 },
];

/** A packet as lines of names and values. */
export function packetLines(packet: Packet): string[] {
  const { metadata, context, hitl, claimed_by, actions, lease } = packet;
  return pairLines([
    ['ID', packet.id],
    ['Status', packet.status],
    ['Priority', metadata.priority],
    ['From', `${metadata.source_agent.name} (${metadata.source_agent.id})`],
    ['To', `${metadata.target_agent.name} (${metadata.target_agent.id})`],
    ['Tags', metadata.tags.join(', ')],
    ['Parent', packet.parent_packet_id],
    ['Claimed by', claimed_by && `${claimed_by.agent_name} (${claimed_by.agent_id}) at ${packet.claimed_at}`],
    ['Lease', lease && (lease.expires_at === null ? 'suspended while the packet awaits a person' : `until ${lease.expires_at}`)],
    ['Token', lease?.token],
    ['Created', packet.created_at],
    ['Updated', packet.updated_at],
    ['Revision', packet.revision],
    ['Summary', context.summary],
    ...packet.decisions.map(({ decision }) => ['Decision', decision] as const),
    ...actions.pending.map(({ description, assignee }) => ['Pending', `${description} (${assignee})`] as const),
    ...actions.completed.map(({ description, result }) => ['Completed', `${description}: ${result}`] as const),
    ...actions.failed.map(({ description, error }) => ['Failed', `${description}: ${error}`] as const),
    ...packet.dependencies.map(({ description }) => ['Depends on', description] as const),
    ['Question', hitl?.question],
    ['Answer', hitl?.response && `${hitl.response} (${hitl.responded_by})`],
  ]);
}

/** An event of the stream as one line. */
export function eventLine(event: StreamEvent | StreamReset): string {
  if (!('packet_id' in event)) return `reset  ${printable(event.reason)}`;
  const { timestamp, type, packet_id, data } = event;
  const fields = [timestamp, type.padEnd(22), packet_id, data?.status ?? '-', printable(data?.context.summary ?? '')];
  return fields.join('  ').trimEnd();
}
