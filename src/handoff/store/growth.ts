import { sql } from 'kysely';
import { dayMs } from '../../kit/dates.ts';

import { createdAt, lowestIdAt } from '../../kit/id.ts';
import type { Database } from '../../kit/sql/dialect.ts';
import { tablesOf } from '../../kit/sql/shape.ts';
import { rowsOfAll } from './all-tenants.ts';
import { migrations } from './migrations/index.ts';
import { storageOf, type TableStorage } from './storage.ts';
import type { Tables } from './tables.ts';

/** What a database holds, and how it grows. */
export interface Growth {
  readonly tables: readonly (TableStorage & {
    /** Whether its rows stay until a packet is deleted permanently; others go after their retention. */
    readonly is_kept: boolean;
  })[];
  readonly bytes: number;
  readonly packets: number;
  /** The packets created in the last week, or since the first one, by day; in a first day, all of them. */
  readonly packets_per_day: number;
  /** What stays of a packet; null with fewer than a thousand packets. */
  readonly bytes_per_packet: number | null;
  /** The size in a year, if as many packets are created each day and none is deleted permanently; null with `bytes_per_packet`. */
  readonly bytes_in_a_year: number | null;
}

/** The fewest packets from which the database's growth is estimated: among fewer, the pages of empty tables count for too much. */
const leastPackets = 1000;

/** The tables of which rows are removed after a time. */
const removed = [
  'answer_links',
  'agents',
  'counters',
  'deliveries',
  'idempotency',
  'idempotency_packets',
  'messages',
  'search_queue',
  'sessions',
];

/** Measures the database. It reads the indexes of all tables, which takes seconds on a large one. */
export async function measureGrowth(database: Database<Tables>, now: Date): Promise<Growth> {
  const names = [...tablesOf(migrations), { name: 'search_index' }];
  const storage = await storageOf(database as unknown as Database<unknown>, names);
  const tables = storage.map((table) => ({ ...table, is_kept: !removed.includes(table.table) }));
  const packets = tables.find(({ table }) => table === 'packets')!.rows;
  const week = new Date(now.getTime() - 7 * dayMs);
  const { created, first } = await rowsOfAll(database.reads, 'packets')
    .select([sql<number>`count(packets.id)`.as('created'), sql<string | null>`min(packets.id)`.as('first')])
    .where('packets.id', '>=', lowestIdAt(week))
    .executeTakeFirstOrThrow();
  const days = first === null ? 7 : Math.max((now.getTime() - createdAt(first).getTime()) / dayMs, 1);
  const sum = (some: readonly TableStorage[]) => some.reduce((total, table) => total + table.bytes, 0);
  const bytes = sum(tables);
  const bytesPerPacket = packets < leastPackets ? null : sum(tables.filter(({ is_kept }) => is_kept)) / packets;
  const packetsPerDay = Number(created) / Math.min(days, 7);
  return {
    tables,
    bytes,
    packets,
    packets_per_day: Math.round(packetsPerDay),
    bytes_per_packet: bytesPerPacket && Math.round(bytesPerPacket),
    bytes_in_a_year: bytesPerPacket && Math.round(bytes + 365 * packetsPerDay * bytesPerPacket),
  };
}
