import type { Migration } from '../../../kit/sql/migrate.ts';
import { chains } from './0001-chains.ts';
import { leases } from './0002-leases.ts';

/** Every step of the schema, in order. */
export const migrations: readonly Migration[] = [chains, leases];

/** Where the steps that were applied are noted: another table than the handoff service's, which may share the database. */
export const migrationsTable = 'fallback_migrations';
