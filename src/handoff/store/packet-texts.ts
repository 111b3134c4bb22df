import { type JoinBuilder, sql } from 'kysely';

import type { Tables } from './tables.ts';

// In a module of its own: the threads that search would otherwise load the schemas of the API, a third of their start.

/** SQL for the JSON text of a packet's summary, as lists show it. */
export const shortText = sql<string>`packets.state || packets.digest`;
/** SQL for the JSON text of a whole packet. */
export const wholeText = sql<string>`packets.state || contents.content`;

/** Joins packets with their contents. */
export const ofPacket = <Joined extends 'packets' | 'contents'>(join: JoinBuilder<Tables, Joined>) =>
  (join as unknown as JoinBuilder<Tables, 'packets' | 'contents'>)
    .onRef('contents.tenant', '=', 'packets.tenant')
    .onRef('contents.packet', '=', 'packets.seq');
