import type { Migration } from '../../../kit/sql/migrate.ts';
import type { Owner } from '../../../kit/sql/owner.ts';
import { first } from './0001-first.ts';

/** All migrations, in order. */
export const migrations: readonly Migration[] = [first];

/** What the service leaves in its database, which may be shared with the handoff service on a server. */
export const schema: Owner = { service: 'fallback', migrations, migrationsTable: 'fallback_migrations' };
