import type { Kysely } from 'kysely';

import type { Tables } from './tables.ts';

/**
 * Runs a long read when it is its tenant's turn; a read whose caller's connection has closed is not started. A read runs its
 * queries one after another: each query in progress uses one of the few connections for long reads.
 */
export type InLane = <T>(read: (db: Kysely<Tables>) => Promise<T>) => Promise<T>;
