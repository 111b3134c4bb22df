import type { Row, Values } from '../../kit/sql/dialect.ts';
import { type ErasedPacket, type Group, noContent, type Writes } from './engine/group.ts';
import type { Session } from './engine/session.ts';
import { indexKey } from './search/index-key.ts';
import type { Tables } from './tables.ts';

/** A packet whose content is erased, by its id and its number. */
interface Erased extends ErasedPacket {
  readonly seq: number;
}

/** Where content of packets lies in a table. */
type Place =
  /** In the rows with this key, which the noun of the table erases. */
  | { readonly key: (packet: Erased, session: Session) => Row }
  /** In rows that are erased together with the rows of another table. */
  | { readonly with: keyof Tables }
  /** Nowhere, for this reason. */
  | { readonly none: string };

const ofPacket: Place = { key: ({ tenant, packet_id }) => ({ tenant, packet_id }) };
const bySeq: Place = { key: ({ tenant, seq }) => ({ tenant, packet: seq }) };

/**
 * Every table, and where content of packets lies in it. A table that is missing here does not compile, nor does a noun that is
 * written without saying how it is erased (`Writes.erase`).
 */
export const places: Record<keyof Tables, Place> = {
  packets: { key: ({ tenant, packet_id }) => ({ tenant, id: packet_id }) },
  contents: bySeq,
  packet_tags: ofPacket,
  packet_subjects: ofPacket,
  questions: ofPacket,
  events: ofPacket,
  answer_links: ofPacket,
  executions: ofPacket,
  calls: ofPacket,
  deliveries: ofPacket,
  messages: { with: 'deliveries' },
  webhooks: { key: ({ tenant, packet_id }) => ({ tenant, for_packet: packet_id }) },
  idempotency_packets: ofPacket,
  idempotency: { with: 'idempotency_packets' },
  search_queue: bySeq,
  search_index: { key: ({ tenant, seq }, session) => indexKey(session, tenant, seq) },
  tenants: { none: 'what admins say of tenants' },
  api_keys: { none: 'what keys may do' },
  people: { none: 'who signs in and answers' },
  sessions: { none: 'who is signed in' },
  secrets: { none: 'secrets of the service' },
  versions: { none: 'numbers' },
  heads: { none: 'digests, which tell nothing of details without their salt' },
  counters: { none: 'numbers' },
  agents: { none: 'when agents were seen' },
  documents: { none: 'contracts, policies, groups, delegations, and schedules, which may not name a person who is erased' },
  schedules: { none: 'when schedules run, and the ids of their last packets' },
  erasures: { none: 'why packets were erased, and the digest of the id of the person' },
};

/** A delivery that had gone out, or may have, before its packet was erased. */
export interface Delivered {
  readonly kind: string;
  /** The id of the webhook or channel. */
  readonly id: string;
  readonly url: string;
}

/** What was erased of a packet. */
export interface ErasedContent {
  /** The number of rows, by table. */
  readonly rows: Readonly<Record<string, number>>;
  readonly delivered: readonly Delivered[];
}

/** Counts what will be erased of packets, by tenant and packet as `keyOf` names them. */
export async function contentOf(session: Session, erased: readonly Erased[], now: Date): Promise<Map<string, ErasedContent>> {
  const counted = Object.entries(places).flatMap(([table, place]) => ('key' in place ? [{ table, key: place.key }] : []));
  const [counts, delivered] = await Promise.all([
    Promise.all(
      counted.map(({ table, key }) =>
        session.count(
          table,
          erased.map((packet) => key(packet, session)),
        ),
      ),
    ),
    deliveredOf(session, erased, now),
  ]);
  return new Map(
    erased.map((packet, index) => {
      const rows = Object.fromEntries(counted.map(({ table }, at) => [table, counts[at]![index]!]));
      return [keyOf(packet), { rows, delivered: delivered.get(keyOf(packet)) ?? [] }];
    }),
  );
}

export const keyOf = ({ tenant, packet_id }: ErasedPacket): string => `${tenant} ${packet_id}`;

/** The deliveries that were attempted, and those whose attempt is under way. */
async function deliveredOf(session: Session, erased: readonly ErasedPacket[], now: Date): Promise<Map<string, Delivered[]>> {
  const keys = erased.map(({ tenant, packet_id }) => ({ tenant, packet_id }));
  const columns = ['tenant', 'packet_id', 'webhook', 'status', 'attempts', 'due_at', 'next_retry_at'];
  const rows = (await session.read('deliveries', columns, keys)).filter((row) => hasGoneOut(row, now));
  const named = [...new Map(rows.map(([tenant, , webhook]) => [`${tenant} ${webhook}`, { tenant: tenant!, seq: webhook! }])).values()];
  const webhooks = new Map<string, Delivered>();
  for (const [tenant, seq, kind, id, url] of await session.read('webhooks', ['tenant', 'seq', 'kind', 'id', 'url'], named))
    webhooks.set(`${tenant} ${seq}`, { kind, id, url } as Delivered);
  const delivered = new Map<string, Delivered[]>();
  for (const [tenant, packet_id, webhook] of rows as [number, string, number][]) {
    const key = keyOf({ tenant, packet_id });
    const to = webhooks.get(`${tenant} ${webhook}`);
    if (to !== undefined) delivered.set(key, [...(delivered.get(key) ?? []), to]);
  }
  return delivered;
}

function hasGoneOut([, , , status, attempts, due_at, next_retry_at]: Values, now: Date): boolean {
  if (status === 'delivered' || Number(attempts) > 0) return true;
  // The end of the lease of an attempt.
  return due_at !== null && due_at !== next_retry_at && String(due_at) > now.toISOString();
}

/** Erases what packets say in the rows of all nouns. It comes before the writes of the group, in lock order. */
export async function eraseContent<Needs>(
  session: Session,
  group: Group<Needs>,
  nouns: readonly { readonly writes: Pick<Writes<Needs, unknown>, 'erase'> }[],
  erased: readonly ErasedPacket[],
): Promise<void> {
  for (const { writes } of nouns) if (writes.erase !== noContent) await writes.erase(session, group, erased);
}
