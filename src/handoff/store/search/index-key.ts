import type { Row } from '../../../kit/sql/dialect.ts';
import type { Session } from '../engine/session.ts';

/** The key of a packet's row in the search index, which on SQLite is a full-text table without a column for the tenant. */
export const indexKey = ({ name }: Pick<Session, 'name'>, tenant: number, packet: number): Row =>
  name === 'sqlite' ? { rowid: packet } : { tenant, rowid: packet };
