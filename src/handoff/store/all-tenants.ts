import { type Kysely, type SelectQueryBuilder, type SqlBool, sql } from 'kysely';

import type { Tables } from './tables.ts';

type OfTenants = 'packets' | 'counters' | 'webhooks';

/**
 * The rows of a table of all tenants, for jobs, read tenant by tenant through the indexes, which begin with the tenant:
 * crossed, so that SQLite does not scan all of a table.
 */
export function rowsOfAll<Name extends OfTenants>(db: Kysely<Tables>, table: Name): SelectQueryBuilder<Tables, Name, object> {
  // The methods of a builder do not depend on the table's name.
  const rows = db
    .selectFrom('tenants')
    .crossJoin(table as 'packets')
    .where(sql<SqlBool>`${sql.ref(`${table}.tenant`)} = tenants.number`);
  return rows as unknown as SelectQueryBuilder<Tables, Name, object>;
}
