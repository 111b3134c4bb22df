import { type SelectQueryBuilder, sql } from 'kysely';

/** The number of rows that a query without a selection would have. */
export async function countOf<DB, Tables extends keyof DB>(rows: SelectQueryBuilder<DB, Tables, unknown>): Promise<number> {
  const counted = rows.select(sql<number>`count(*)`.as('count')).$castTo<{ count: number }>();
  return Number((await counted.executeTakeFirstOrThrow()).count);
}
