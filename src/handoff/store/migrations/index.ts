import type { Migration } from '../../../kit/sql/migrate.ts';
import { first } from './0001-first.ts';

/** All migrations, in order. */
export const migrations: readonly Migration[] = [first];
