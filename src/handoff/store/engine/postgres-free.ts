import type { PostgresTransaction, Values } from '../../../kit/sql/dialect.ts';
import type { Beginning, Beginnings } from './beginnings.ts';
import { byAt, type FreeSearch, freeSearchSql, idAt, orderOf, placeSql } from './free-search.ts';

/** Below all places, and before a trail. */
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
  const due = beginnings.due(search);
  const looking = due === undefined ? [] : look(tx, table, search, due.from ?? everything);
  const { text, values } = findText(table, columns, search, beginnings.of(search));
  const finding = tx.run(text, [...values, limit]);
  tx.track(tx.run('set local enable_sort = on'));
  const [found, firsts = [], returned = []] = await Promise.all([finding, ...looking]);
  if (due !== undefined && firsts.length > 0) {
    const [, , position, newest] = firsts[0] as [string, string | null, number | null, string | null];
    const first = new Map(firsts.map(([value, place]) => [value, place] as [string, string | null]));
    beginnings.looked(search, due.from, { position: position ?? 0, first, newest, returned: returned.map(([place]) => place as string) });
  }
  beginnings.found(search, found.length);
  return found;
}

/** The order of the index that serves the search. */
const orderBy = (search: FreeSearch) => `order by ${orderOf(search)}${search.nullsFirst ? ' nulls first' : ''}`;

type Parameter = (value: unknown) => string;

/** The ranked values with their floors, as a table `wanted`. */
function wantedText({ by, ranked }: FreeSearch, { floors }: Pick<Beginning, 'floors'>, parameter: Parameter): string {
  const places = ranked.values.map((value) => floors.get(value) ?? '');
  const parts = [ranked.values, places.map(idAt), ...(by === undefined ? [] : [places.map(byAt)])];
  const lists = parts.map((part) => `${parameter(part)}::text[]`);
  return `unnest(${lists.join(', ')}) wanted (value, floor${by === undefined ? '' : ', floor_by'})`;
}

/** Whether a row is at the floor of its ranked value or after it, or before it. */
const atFloor = ({ id, by }: FreeSearch, operator: '>=' | '<'): string =>
  by === undefined ? `${id} ${operator} wanted.floor` : `(${by}, ${id}) ${operator} (wanted.floor_by, wanted.floor)`;

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
  const names = columns.join(', ');
  const rows = (condition: string) =>
    `select ${names} from ${table} where ${conditions} and ${search.ranked.column} = wanted.value and ${condition}`;
  const wanted = wantedText(search, beginning ?? everything, parameter);
  const returned = beginning === undefined ? undefined : returnedText(search, beginning, parameter);
  const limit = `limit $${values.length + 1}`;
  // The join reads the wanted values in their order and stops at the limit, so that only the rows returned are locked.
  const fromFloor = `${rows(atFloor(search, '>='))} ${orderBy(search)} ${limit} for update skip locked`;
  if (returned === undefined) {
    const text = `select ${columns.map((name) => `free.${name}`).join(', ')} from ${wanted} cross join lateral (${fromFloor}) free ${limit}`;
    return { text, values };
  }
  // Those below the floor come first. Each is read by its id, so that no other index entry is visited.
  const text = `with returned (id) as materialized (${returned})
    select ${columns.map((name) => `free.${name}`).join(', ')} from ${wanted} cross join lateral (
      select below.* from (${search.by === undefined ? namedBelow : freeBelow(table, search, conditions)}) one
        cross join lateral (${rows(`${id} = one.id and ${atFloor(search, '<')}`)} for update skip locked) below
      union all select * from (${fromFloor}) from_floor) free ${limit}`;
  return { text, values };
}

/** The query of the returned ids below the floor of a wanted value, in their order: without `by` they are the places. */
const namedBelow = 'select id from returned where id < wanted.floor order by id';

/** The query of the returned rows that are free and below the floor of a wanted value, with their places, in their order. */
const freeBelow = (table: string, search: FreeSearch, conditions: string) => `
  select known.id, known.place from returned cross join lateral (
    select ${search.id} as id, ${placeSql(search)} as place from ${table}
    where ${conditions} and ${search.ranked.column} = wanted.value and ${search.id} = returned.id and ${atFloor(search, '<')} limit 1) known
  order by known.place`;

/**
 * The query of the ids that may be free below the floors. An id is compared as an expression, here and in a look, so that PostgreSQL
 * reads the trail from the position on, and not the index of all ids.
 */
function returnedText(search: FreeSearch, { position, floors, returned }: Beginning, parameter: Parameter): string {
  const { id } = search.since;
  const highest = [...floors.values()].reduce((most, floor) => (floor > most ? floor : most), '');
  const isBelow = search.by === undefined ? ` and ${id} || '' < ${parameter(highest)}` : '';
  const freed = freedText(search, id, position, parameter);
  return `${freed}${isBelow} union select unnest(${parameter(returned.map(idAt))}::text[])`;
}

/** The query of what the trail has of the rows that became free after a position, or changed and were free. */
function freedText({ since }: FreeSearch, selected: string, position: number, parameter: Parameter): string {
  const { table, position: column, condition, tenant } = since;
  return `select ${selected} from ${table} where tenant = ${parameter(tenant)} and ${column} > ${parameter(position)} and ${condition}`;
}

/** Looks up where the search begins: the first free row of each ranked value with the end of the trail, and the free rows below. */
function look(tx: PostgresTransaction, table: string, search: FreeSearch, from: Beginning): Promise<Values[]>[] {
  const { since, ranked } = search;
  const firsts: unknown[] = [];
  const parameter = (value: unknown) => `$${firsts.push(value)}`;
  const isWanted = `${freeSearchSql(search, parameter)} and ${ranked.column} = wanted.value`;
  const text = `select wanted.value,
      (select ${placeSql(search)} from ${table} where ${isWanted} and ${atFloor(search, '>=')} ${orderBy(search)} limit 1),
      (select max(${since.position}) from ${since.table} where tenant = ${parameter(since.tenant)}),
      (${newestText(table, search, from.position, parameter)})
    from ${wantedText(search, from, parameter)}`;
  const looking = tx.run(text, firsts);
  if (from === everything) return [looking];
  const below: unknown[] = [];
  const belowParameter = (value: unknown) => `$${below.push(value)}`;
  const conditions = freeSearchSql(search, belowParameter);
  const wanted = wantedText(search, from, belowParameter);
  const belowText = `with returned (id) as materialized (${returnedText(search, from, belowParameter)})
    select below.place from ${wanted} cross join lateral (${freeBelow(table, search, conditions)}) below`;
  return [looking, tx.run(belowText, below)];
}

/** The query of the last of the places that became free after a position, also of places that are no longer free. */
function newestText(table: string, search: FreeSearch, position: number, parameter: Parameter): string {
  const { since, id, by } = search;
  if (by === undefined) return freedText(search, `max(${since.id} || '')`, position, parameter);
  return `select max(known.place) from (${freedText(search, `${since.id} as id`, position, parameter)}) freed cross join lateral (
    select ${placeSql(search)} as place from ${table} where tenant = ${parameter(since.tenant)} and ${id} = freed.id limit 1) known`;
}
