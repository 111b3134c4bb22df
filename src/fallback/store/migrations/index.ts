import type { Migration } from '../../../kit/sql/migrate.ts';
import { chains } from './0001-chains.ts';
import { leases } from './0002-leases.ts';
import { chainNames } from './0003-chain-names.ts';

/** All migrations, in order. */
export const migrations: readonly Migration[] = [chains, leases, chainNames];

/** The table of applied migrations. It differs from the handoff service's, which may share the database. */
export const migrationsTable = 'fallback_migrations';
