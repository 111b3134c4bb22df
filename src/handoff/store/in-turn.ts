import type { Kysely } from 'kysely';

import type { Tables } from './tables.ts';

/** Runs a long read on the database it is given, when it is its tenant's turn; a read whose caller's connection has closed is not started. */
export type InTurn = <T>(read: (db: Kysely<Tables>) => Promise<T>) => Promise<T>;
