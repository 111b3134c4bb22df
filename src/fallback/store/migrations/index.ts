import type { Migration } from '../../../kit/sql/migrate.ts';
import { first } from './0001-first.ts';

/** All migrations, in order. */
export const migrations: readonly Migration[] = [first];

/** The table of applied migrations. It differs from the handoff service's, which may share the database. */
export const migrationsTable = 'fallback_migrations';
