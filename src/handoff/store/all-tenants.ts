import { type Kysely, type SelectQueryBuilder, type SqlBool, sql } from 'kysely';

import type { Database } from '../../kit/sql/dialect.ts';
import type { Tables } from './tables.ts';

type OfTenants = 'packets' | 'counters' | 'webhooks';

/**
 * The rows of a table of all tenants, for jobs. One server goes tenant by tenant through the indexes, which begin with the tenant:
 * crossed, so that SQLite does not scan all of a table. A cluster can't join with a table of its coordinator, and its servers
 * each read their own rows.
 */
export function rowsOfAll<Name extends OfTenants>(
  { isDistributed }: Pick<Database<Tables>, 'isDistributed'>,
  db: Kysely<Tables>,
  table: Name,
): SelectQueryBuilder<Tables, Name, object> {
  // The methods of a builder do not depend on the table's name.
  const named = table as 'packets';
  const rows = isDistributed
    ? db.selectFrom(named)
    : db
        .selectFrom('tenants')
        .crossJoin(named)
        .where(sql<SqlBool>`${sql.ref(`${table}.tenant`)} = tenants.number`);
  return rows as unknown as SelectQueryBuilder<Tables, Name, object>;
}
