import type { PostgresTransaction, Values } from '../../../kit/sql/dialect.ts';
import type { Beginning, Beginnings } from './beginnings.ts';
import { type FreeSearch, freeSearchSql, orderOf } from './free-search.ts';

/** A text below all ids, and the position before a trail. */
const everything: Beginning = { position: 0, floors: new Map(), returned: [] };

/**
 * `Session.findFree` on PostgreSQL. Where the search begins is looked up in the same round trip, now and then, by a statement before
 * the search: what is committed between the two is after the position of that look.
 */
export async function findFreeRows(
  tx: PostgresTransaction,
  { table, columns, search, limit }: { table: string; columns: readonly string[]; search: FreeSearch; limit: number },
  beginnings: Beginnings,
): Promise<Values[]> {
  // A plan that sorts reads every matching row, also dead ones. PostgreSQL prefers it when it estimates one row.
  tx.track(tx.run('set local enable_sort = off'));
  const hasBeginning = search.by === undefined;
  const due = hasBeginning ? beginnings.due(search) : undefined;
  const looking = due === undefined ? [] : look(tx, table, search, due.from ?? everything);
  const { text, values } = findText(table, columns, search, hasBeginning ? beginnings.of(search) : undefined);
  const finding = tx.run(text, [...values, limit]);
  tx.track(tx.run('set local enable_sort = on'));
  const [found, firsts = [], returned = []] = await Promise.all([finding, ...looking]);
  if (due !== undefined && firsts.length > 0) {
    const [, , position, newest] = firsts[0] as [string, string | null, number | null, string | null];
    const first = new Map(firsts.map(([value, id]) => [value, id] as [string, string | null]));
    beginnings.looked(search, due.from, { position: position ?? 0, first, newest, returned: returned.map(([id]) => id as string) });
  }
  if (hasBeginning) beginnings.found(search, found.length);
  return found;
}

/** The order of the index that serves the search. */
const orderBy = (search: FreeSearch) => `order by ${orderOf(search)}${search.nullsFirst ? ' nulls first' : ''}`;

/** The statement that finds and locks free rows from a beginning on, except for its last parameter, the limit. */
function findText(
  table: string,
  columns: readonly string[],
  search: FreeSearch,
  beginning: Beginning | undefined,
): { text: string; values: unknown[] } {
  const { id } = search;
  const values: unknown[] = [];
  const parameter = (value: unknown) => `$${values.push(value)}`;
  const conditions = freeSearchSql(search, parameter);
  const { column, values: ranked } = search.ranked;
  const names = columns.join(', ');
  const rows = (condition: string) => `select ${names} from ${table} where ${conditions} and ${column} = wanted.value and ${condition}`;
  const floors = ranked.map((value) => beginning?.floors.get(value) ?? '');
  const wanted = `unnest(${parameter(ranked)}::text[], ${parameter(floors)}::text[]) wanted (value, floor)`;
  const returned = beginning === undefined ? undefined : returnedText(search, beginning, parameter);
  const limit = `limit $${values.length + 1}`;
  // The join reads the wanted values in their order and stops at the limit, so that only the rows returned are locked.
  const fromFloor = `${rows(`${id} >= wanted.floor`)} ${orderBy(search)} ${limit} for update skip locked`;
  if (returned === undefined) {
    const text = `select ${columns.map((name) => `free.${name}`).join(', ')} from ${wanted} cross join lateral (${fromFloor}) free ${limit}`;
    return { text, values };
  }
  // Those below the floor come first. Each is read by its id, so that no other index entry is visited.
  const text = `with returned (id) as materialized (${returned})
    select ${columns.map((name) => `free.${name}`).join(', ')} from ${wanted} cross join lateral (
      select below.* from (select id from returned where id < wanted.floor order by id) one
        cross join lateral (${rows(`${id} = one.id`)} for update skip locked) below
      union all select * from (${fromFloor}) from_floor) free ${limit}`;
  return { text, values };
}

/**
 * The query of the ids that may be free below the floors. An id is compared as an expression, here and in a look, so that PostgreSQL
 * reads the trail from the position on, and not the index of all ids.
 */
function returnedText({ since }: FreeSearch, { position, floors, returned }: Beginning, parameter: (value: unknown) => string): string {
  const { table, id, position: column, condition, tenant } = since;
  const highest = [...floors.values()].reduce((most, floor) => (floor > most ? floor : most), '');
  return `select ${id} from ${table} where tenant = ${parameter(tenant)} and ${column} > ${parameter(position)} and ${condition} and ${id} || '' < ${parameter(highest)}
    union select unnest(${parameter(returned)}::text[])`;
}

/** Looks up where the search begins: the first free row of each ranked value with the end of the trail, and the free rows below. */
function look(tx: PostgresTransaction, table: string, search: FreeSearch, from: Beginning): Promise<Values[]>[] {
  const { since, ranked, id } = search;
  const floors = ranked.values.map((value) => from.floors.get(value) ?? '');
  const firsts: unknown[] = [];
  const parameter = (value: unknown) => `$${firsts.push(value)}`;
  const conditions = freeSearchSql(search, parameter);
  const tenant = `tenant = ${parameter(since.tenant)}`;
  const text = `select wanted.value,
      (select ${id} from ${table} where ${conditions} and ${ranked.column} = wanted.value and ${id} >= wanted.floor ${orderBy(search)} limit 1),
      (select max(${since.position}) from ${since.table} where ${tenant}),
      (select max(${since.id} || '') from ${since.table} where ${tenant} and ${since.position} > ${parameter(from.position)} and ${since.condition})
    from unnest(${parameter(ranked.values)}::text[], ${parameter(floors)}::text[]) wanted (value, floor)`;
  const looking = tx.run(text, firsts);
  if (from === everything) return [looking];
  const below: unknown[] = [];
  const belowParameter = (value: unknown) => `$${below.push(value)}`;
  const free = freeSearchSql(search, belowParameter);
  const wanted = `unnest(${belowParameter(ranked.values)}::text[], ${belowParameter(floors)}::text[]) wanted (value, floor)`;
  const belowText = `with returned (id) as materialized (${returnedText(search, from, belowParameter)})
    select below.id from ${wanted} cross join lateral (select returned.id from returned where returned.id < wanted.floor) one
      cross join lateral (select ${id} as id from ${table} where ${free} and ${ranked.column} = wanted.value and ${id} = one.id limit 1) below`;
  return [looking, tx.run(belowText, below)];
}
