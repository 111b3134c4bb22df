import type { Generated } from 'kysely';
import { readJson } from '../../kit/json.ts';
import type { Row, Values } from '../../kit/sql/dialect.ts';
import type { PacketSummary } from '../model/packet.ts';
import { dueAt } from '../rules/due.ts';
import type { KeptOfQuestions } from '../rules/kept.ts';
import type { StoredLease } from '../rules/lease.ts';
import type { AnyPacket } from '../rules/packet.ts';
import { askedStatus, claimableStatus, openStatuses } from '../rules/packet-life.ts';
import { subjectDigests } from '../rules/subjects.ts';
import { type PacketParts, summaryText } from '../rules/text.ts';
import { heldUntil, isOverdue, waitsSince } from '../rules/times.ts';
import type { Session } from './engine/session.ts';
import { storable } from './engine/storable.ts';

declare module './tables.ts' {
  interface Tables {
    packets: {
      seq: Generated<number>;
      tenant: number;
      id: string;
      status: string;
      revision: number;
      source_agent: string;
      target_agent: string;
      priority: string;
      hitl_required: number;
      /** When a background job must next examine it; null: never. */
      due_at: string | null;
      /** When its open question was asked; null: none is open. */
      asked_at: string | null;
      /** Two of the three parts of its JSON text; the third is in `contents`. */
      state: string;
      digest: string;
      /** The id of its parent packet. */
      parent: string | null;
      /** The id of the root of its chain; null: it is the root itself. */
      root: string | null;
      /** Its depth in its chain: 1 for the root. */
      depth: number;
      /** The agent that holds it or held it last. */
      claimed_by: string | null;
      updated_at: string;
      /** Its lease state as JSON; null: it was never leased. */
      lease: string | null;
      /** The numbers of the webhooks that are for it alone, as a JSON array; null: none. */
      followers: string | null;
      /** The keys that are sources of its question (`withSource`), as a JSON array; null: none. */
      sources: string | null;
      /** What the service keeps of its questions beside the packet (`KeptOfQuestions`), as JSON; null: nothing. */
      kept: string | null;
      /**
       * The source agent while the packet is open; null: it is finished. Open packets are counted by it: an index with a condition
       * on the status would be written whenever the status changes.
       */
      open_source: string | null;
      /** Its `not_before` while it is `created` and that is to come; null: it may be claimed, if it is `created`. */
      scheduled_at: string | null;
      /** Since when it waits to be claimed, if it is `created` and its `not_before` has passed; otherwise null. */
      available_at: string | null;
      /** Its `due_at`, which the packet keeps when it has ended. */
      deadline: string | null;
      /** 1: it is open and overdue; otherwise null. */
      overdue: number | null;
      /** When it ended, or last changed after that; null: it is open, or erased. */
      ended_at: string | null;
    };
    /** The content of packets, separate from the state, so that a claim neither writes nor parses the long part. */
    contents: { tenant: number; packet: number; content: string };
    packet_tags: { tenant: number; tag: string; packet_id: string };
    /** Whose data packets hold, by the digests of the people's ids. */
    packet_subjects: { tenant: number; subject_digest: string; packet_id: string };
  }
}

/** A packet in a group: its summary or the whole packet, and the texts that are stored. */
export interface StoredPacket {
  readonly packet: AnyPacket;
  readonly parts: PacketParts;
  /** Its `seq`; 0 before it is inserted. */
  readonly seq: number;
  /** Its lease state. */
  readonly lease: StoredLease | null;
  /** Its depth in its chain: 1 for the root. */
  readonly depth: number;
  /** The id of the root of its chain; null: it is the root itself. */
  readonly root: string | null;
  /** The numbers of the webhooks that are for it alone, as a JSON array; null: none. */
  readonly followers: string | null;
  /** The keys that are sources of its question (`withSource`), as a JSON array; null: none. */
  readonly sources: string | null;
  /** What the service keeps of its questions, as JSON; null: nothing. */
  readonly kept: string | null;
}

/** A stored packet before and after a group; `searchable`: it must be indexed again. */
export interface Change {
  readonly before: StoredPacket;
  readonly after: StoredPacket;
  readonly searchable: boolean;
}

/** The columns that a packet is read from, beside its content. */
export const foundColumns = ['id', 'seq', 'state', 'digest', 'lease', 'depth', 'root', 'followers', 'sources', 'kept'] as const;

/** A stored packet, parsed as its summary. */
export function storedOf([, seq, state, digest, lease, depth, root, followers, sources, kept]: Values, content: string): StoredPacket {
  const parts = { state: state as string, summaryEnd: digest as string, content };
  return {
    packet: readJson(summaryText(parts)) as PacketSummary,
    parts,
    seq: seq as number,
    lease: lease === null ? null : (readJson(lease as string) as StoredLease),
    depth: depth as number,
    root: root as string | null,
    followers: followers as string | null,
    sources: sources as string | null,
    kept: kept as string | null,
  };
}

interface Inserted {
  readonly tenant: number;
  readonly after: StoredPacket;
}
export type Changed = Inserted & Change;

export function flushRows(session: Session, inserted: readonly Inserted[], changed: readonly Changed[]): void {
  const rewritten = changed.filter(({ before, after }) => before.parts.content !== after.parts.content);
  const fresh = inserted.map(({ tenant, after }) => Object.assign(packetRow(tenant, after), { seq: after.seq }));
  for (const rows of byColumns(fresh)) session.insert('packets', rows);
  for (const rows of byColumns(changed.map(changedRow))) session.update('packets', ['tenant', 'id'], rows);
  session.insert(
    'contents',
    inserted.map(({ tenant, after }) => contentRow(tenant, after)),
  );
  session.update(
    'contents',
    ['tenant', 'packet'],
    rewritten.map(({ tenant, after }) => contentRow(tenant, after)),
  );
}

/** The rows that have the same columns, together. */
function byColumns(rows: readonly Row[]): Row[][] {
  const groups: { readonly columns: readonly string[]; readonly rows: Row[] }[] = [];
  for (const row of rows) {
    const columns = Object.keys(row);
    const group = groups.find(
      (known) => known.columns.length === columns.length && columns.every((name, at) => name === known.columns[at]),
    );
    if (group === undefined) groups.push({ columns, rows: [row] });
    else group.rows.push(row);
  }
  return groups.map((known) => known.rows);
}

export function flushTags(session: Session, inserted: readonly Inserted[], changed: readonly Changed[]): void {
  const retagged = changed.filter((change) => !sameTags(change));
  session.remove(
    'packet_tags',
    retagged.flatMap(({ tenant, before }) => tagRows(tenant, before)),
  );
  session.insert(
    'packet_tags',
    [...inserted, ...retagged].flatMap(({ tenant, after }) => tagRows(tenant, after)),
  );
}

export function flushSubjects(session: Session, inserted: readonly Inserted[], changed: readonly Changed[]): void {
  const changes = changed.filter((change) => !sameSubjects(change));
  session.remove(
    'packet_subjects',
    changes.flatMap(({ tenant, before }) => subjectRows(tenant, before)),
  );
  session.insert(
    'packet_subjects',
    [...inserted, ...changes].flatMap(({ tenant, after }) => subjectRows(tenant, after)),
  );
}

export const subjectRows = (tenant: number, { packet }: StoredPacket): Row[] =>
  subjectDigests(packet).map((subject_digest) => ({ tenant, subject_digest, packet_id: packet.id }));

const sameSubjects = ({ before: { packet: before }, after: { packet: after } }: Change) =>
  before.metadata.subjects === after.metadata.subjects ||
  JSON.stringify(before.metadata.subjects ?? []) === JSON.stringify(after.metadata.subjects ?? []);

/** The row of a packet. Columns of times that it neither has nor had are left out: they are null. */
function packetRow(tenant: number, stored: StoredPacket, before?: StoredPacket): Row {
  const { packet, parts, lease, depth, root, sources, kept } = stored;
  const { id, status, revision, parent_packet_id, metadata, hitl, updated_at } = packet;
  return withTimes(stored, before, {
    tenant,
    id,
    status,
    revision,
    source_agent: storable(metadata.source_agent.id),
    target_agent: storable(metadata.target_agent.id),
    priority: metadata.priority,
    hitl_required: hitl?.required === true ? 1 : 0,
    due_at: dueAt(packet, isOwn(kept)),
    asked_at: askedAt(packet),
    state: parts.state,
    digest: parts.summaryEnd,
    parent: parent_packet_id,
    root,
    depth,
    claimed_by: holderOf(stored),
    updated_at,
    lease: lease === null ? null : JSON.stringify(lease),
    sources,
    kept,
    open_source: openSourceOf(stored),
    ended_at: endedAt(stored),
  });
}

/** The columns that a change of a packet updates. SQLite rewrites the index entries of each of them, changed or not. */
function changedRow(change: Changed): Row {
  const { tenant, before, after } = change;
  if (!sameFilters(change)) return packetRow(tenant, after, before);
  const { id, status, revision, updated_at } = after.packet;
  const row = withTimes(after, before, {
    tenant,
    id,
    status,
    revision,
    due_at: dueAt(after.packet, isOwn(after.kept)),
    asked_at: askedAt(after.packet),
    state: after.parts.state,
    digest: after.parts.summaryEnd,
    updated_at,
    lease: after.lease === null ? null : JSON.stringify(after.lease),
    sources: after.sources,
    kept: after.kept,
  });
  if (holderOf(before) !== holderOf(after)) row.claimed_by = holderOf(after);
  if (isOpen(before) !== isOpen(after)) row.open_source = openSourceOf(after);
  if (!isOpen(after)) row.ended_at = endedAt(after);
  return row;
}

const hasTimes = ({ packet: { not_before, due_at } }: StoredPacket): boolean => not_before !== undefined || due_at !== undefined;

/** The row with the columns of the times of a packet, if it has times, or had some before. */
function withTimes(after: StoredPacket, before: StoredPacket | undefined, row: Row): Row {
  if (!hasTimes(after) && (before === undefined || !hasTimes(before))) return row;
  const { packet } = after;
  const scheduled_at = heldUntil(packet);
  const isAvailable = packet.status === claimableStatus && packet.not_before !== undefined && scheduled_at === null;
  const available_at = isAvailable ? waitsSince(packet) : null;
  return Object.assign(row, { scheduled_at, available_at, deadline: packet.due_at ?? null, overdue: isOverdue(packet) ? 1 : null });
}

function contentRow(tenant: number, { parts, seq }: StoredPacket): Row {
  return { tenant, packet: seq, content: parts.content };
}

/** Whether the filter columns, except for the status, are unchanged. */
function sameFilters({ before: { packet: before }, after: { packet: after } }: Change): boolean {
  return (
    before.metadata.target_agent.id === after.metadata.target_agent.id &&
    before.metadata.priority === after.metadata.priority &&
    (before.hitl?.required === true) === (after.hitl?.required === true)
  );
}

/** Whether a packet was made to ask about an action whose execution has not begun. */
export const isOwn = (kept: string | null): boolean => kept !== null && (readJson(kept) as KeptOfQuestions).own === 'waiting';

/** When the packet's open question was asked; null without one. */
const askedAt = ({ status, hitl }: StoredPacket['packet']): string | null => (status === askedStatus ? (hitl?.requested_at ?? null) : null);

/** The id of the agent that holds the packet. */
function holderOf({ packet: { claimed_by } }: StoredPacket): string | null {
  return claimed_by === null ? null : storable(claimed_by.agent_id);
}

const isOpen = ({ packet: { status } }: StoredPacket): boolean => openStatuses.includes(status);

/** When a packet that is kept ended, or last changed after that. */
const endedAt = (stored: StoredPacket): string | null =>
  isOpen(stored) || stored.packet.erased === true ? null : stored.packet.updated_at;

/** The source agent of a packet that is not finished. */
const openSourceOf = (stored: StoredPacket): string | null => (isOpen(stored) ? storable(stored.packet.metadata.source_agent.id) : null);

export function tagRows(tenant: number, { packet: { id, metadata } }: StoredPacket): Row[] {
  return [...new Set(metadata.tags.map(storable))].map((tag) => ({ tenant, tag, packet_id: id }));
}

const sameTags = ({ before, after }: Change) => before.packet.metadata.tags.join('\u0000') === after.packet.metadata.tags.join('\u0000');
