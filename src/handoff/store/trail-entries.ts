import { sql } from 'kysely';

import type { ReadDependencies, ReadScope } from './noun.ts';
import type { RowOf } from './tables.ts';

/** An entry about a packet that has a stream event. */
export type TrailEntry = Pick<RowOf<'events'>, 'id' | 'position' | 'event_type' | 'details' | 'payload' | 'timestamp'> & {
  packet_id: string;
};

const columns = ['id', 'position', 'packet_id', 'event_type', 'details', 'payload', 'timestamp'] as const;

/** Prepares the reads of the trail for the events of MCP, once; returns those of a tenant. */
export function entryReads({ database }: Pick<ReadDependencies, 'database'>) {
  const ofPackets = database.query<{ tenant: number; after: number; upTo: number }, TrailEntry>((db, { tenant, after, upTo }) =>
    db
      .selectFrom('events')
      .select(columns)
      .where('tenant', '=', tenant)
      .where('position', '>', after)
      .where('position', '<=', upTo)
      .where('type', 'is not', null)
      .orderBy('position')
      .$castTo<TrailEntry>(),
  );
  const before = database.query<{ tenant: number; timestamp: string }, { position: number }>((db, { tenant, timestamp }) =>
    db
      .selectFrom('events')
      .select('position')
      .where('tenant', '=', tenant)
      .where('timestamp', '<', timestamp)
      .orderBy('timestamp', 'desc')
      .orderBy('position', 'desc')
      .limit(sql.lit(1)),
  );
  const one = database.query<{ tenant: number; packet_id: string; id: string }, TrailEntry>((db, { tenant, packet_id, id }) =>
    db
      .selectFrom('events')
      .select(columns)
      .where('tenant', '=', tenant)
      .where('packet_id', '=', packet_id)
      .where('id', '=', id)
      .$castTo<TrailEntry>(),
  );
  return (scope: ReadScope) => ({
    /** The entries about packets after a position, up to and including another, in order, that have a stream event. */
    packetEvents: (after: number, upTo: number) => ofPackets.all({ tenant: scope.tenant, after, upTo }),
    /** The position of the last entry before a time; 0 if there is none. */
    positionBefore: async (at: Date): Promise<number> =>
      (await before.first({ tenant: scope.tenant, timestamp: at.toISOString() }))?.position ?? 0,
    /** An entry about a packet by its id. */
    packetEvent: async (packet_id: string, id: string): Promise<TrailEntry | undefined> =>
      one.first({ tenant: scope.tenant, packet_id, id }),
  });
}
