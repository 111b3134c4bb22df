import type { Migration } from '../../../kit/sql/migrate.ts';
import { packets } from './0001-packets.ts';
import { events } from './0002-events.ts';

/** Every step of the schema, in order. */
export const migrations: readonly Migration[] = [packets, events];
