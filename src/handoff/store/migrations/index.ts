import type { Migration } from '../../../kit/sql/migrate.ts';
import { packets } from './0001-packets.ts';

/** Every step of the schema, in order. */
export const migrations: readonly Migration[] = [packets];
