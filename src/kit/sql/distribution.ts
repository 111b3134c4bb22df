import { type Kysely, sql } from 'kysely';
import { readJson } from '../json.ts';

import type { Database } from './dialect.ts';
import type { Migration } from './migrate.ts';

/** The tables of migrations whose rows belong to tenants, by the column `tenant`, and whether Citus distributes them. */
async function tablesOfTenants(
  tx: Kysely<unknown>,
  migrations: readonly Migration[],
): Promise<{ name: string; is_distributed: boolean }[]> {
  const names = migrations.flatMap(({ up }) => up('postgres')).flatMap((statement) => /^create table (\w+)/.exec(statement)?.[1] ?? []);
  const { rows } = await sql<{ name: string; is_distributed: boolean }>`
    select table_name::text as name,
      exists (select 1 from pg_dist_partition where logicalrelid = to_regclass(quote_ident(table_name))) as is_distributed
    from information_schema.columns
    where table_schema = current_schema() and column_name = 'tenant' and table_name in (${sql.join(names)})
    order by array_position(array[${sql.join(names)}]::text[], table_name::text)`.execute(tx);
  return rows;
}

/**
 * Amounts by table, summed over all servers of a cluster, where the coordinator's own tables of tenants are empty.
 * `amount`: an SQL expression over `relation`, a row of the view or table. A part of a distributed table has the table's name and a number.
 * @throws Error when one of the servers does not answer
 */
export async function sumOverServers(db: Kysely<unknown>, relation: string, name: string, amount: string): Promise<Map<string, number>> {
  const ofServer = `select coalesce(json_object_agg(name, amount), '{}') from (
    select regexp_replace(${name}, '_[0-9]+$', '') as name, sum(${amount}) as amount from ${relation} group by 1) summed`;
  const { rows } = await sql<{ success: boolean; result: string }>`
    select success, result from run_command_on_all_nodes(${ofServer})`.execute(db);
  const sums = new Map<string, number>();
  for (const { success, result } of rows) {
    if (!success) throw new Error(`A server of the cluster does not answer: ${result}`);
    for (const [table, own] of Object.entries(readJson(result) as Record<string, number>)) sums.set(table, (sums.get(table) ?? 0) + own);
  }
  return sums;
}

/**
 * Distributes the tables of tenants over the servers of a Citus cluster by their tenant, all of a tenant's rows on one server.
 * `isNew`: the migrations have just made all tables.
 * @throws Error when the address doesn't say what the database is
 */
export async function distribute(
  tx: Kysely<unknown>,
  { isDistributed }: Pick<Database<unknown>, 'isDistributed'>,
  { migrations, isNew }: { migrations: readonly Migration[]; isNew: boolean },
): Promise<void> {
  const { rows: installed } = await sql`select 1 from pg_extension where extname = 'citus'`.execute(tx);
  if (installed.length === 0) {
    if (!isDistributed) return;
    throw new Error(
      '?citus=true is for a database with the extension citus, which this one does not have: run "create extension citus" on every server.',
    );
  }
  const tables = await tablesOfTenants(tx, migrations);
  const distributed = tables.filter(({ is_distributed }) => is_distributed);
  if (!isDistributed) {
    if (distributed.length === 0) return;
    throw new Error('The tables of this database are distributed by Citus: add ?citus=true to its address.');
  }
  if (tables.length === 0) throw new Error('?citus=true is for a service with tenants: this one has no tables to distribute.');
  if (distributed.length === 0 && !isNew)
    throw new Error(
      'The tables of this database are not distributed, and ?citus=true distributes only new ones: export it, and import into a new database.',
    );
  let [first] = distributed.map(({ name }) => name);
  for (const { name, is_distributed } of tables) {
    if (is_distributed) continue;
    await sql`select create_distributed_table(${name}::regclass, 'tenant', colocate_with => ${first ?? 'none'})`.execute(tx);
    first ??= name;
  }
}
