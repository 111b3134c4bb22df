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
    const [, , position, last] = firsts[0] as [string, string | null, number | null, string | null];
    const first = new Map(firsts.map(([value, place]) => [value, place] as [string, string | null]));
    beginnings.looked(search, due.from, { position: position ?? 0, first, last, returned: returned.map(([place]) => place as string) });
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
  const values: unknown[] = [];
  const parameter = (value: unknown) => `$${values.push(value)}`;
  const conditions = freeSearchSql(search, parameter);
  const names = columns.join(', ');
  const free = columns.map((name) => `free.${name}`).join(', ');
  const isWanted = `${conditions} and ${search.ranked.column} = wanted.value`;
  const wanted = wantedText(search, beginning ?? everything, parameter);
  const returned = beginning === undefined ? undefined : returnedText(table, search, beginning, conditions, parameter);
  const limit = `limit $${values.length + 1}`;
  // The join reads the wanted values in their order and stops at the limit, so that only the rows returned are locked.
  const fromFloor = `select ${names} from ${table} where ${isWanted} and ${atFloor(search, '>=')} ${orderBy(search)} ${limit} for update skip locked`;
  if (returned === undefined) return { text: `select ${free} from ${wanted} cross join lateral (${fromFloor}) free ${limit}`, values };
  // Those below the floor come first. They are read again, because they may have changed before they are locked.
  const text = `with returned as materialized (${returned.text})
    select ${free} from ${wanted} cross join lateral (
      select below.* from (select ${search.id} from ${belowFloor(search)} order by ${orderOf(search)}) one
        cross join lateral (select ${names} from (${returned.rowOf('one')} for update skip locked) known
          where ${isWanted} and ${atFloor(search, '<')}) below
      union all select * from (${fromFloor}) from_floor) free ${limit}`;
  return { text, values };
}

/** The returned rows of a wanted value below its floor. */
const belowFloor = (search: FreeSearch) => `returned where ${search.ranked.column} = wanted.value and ${atFloor(search, '<')}`;

/**
 * The query of the free rows that may be below the floors, with what orders and ranks them, and that of a row whose id another one has.
 * A row is read by its id before it is known to be free: an index of free rows has an entry for each that was. The ids of the trail
 * are compared as expressions, so that PostgreSQL reads it from the position on, and not the index of all ids.
 */
function returnedText(
  table: string,
  search: FreeSearch,
  { position, floors, returned }: Beginning,
  conditions: string,
  parameter: Parameter,
): { text: string; rowOf: (named: string) => string } {
  const { id, by, ranked, since } = search;
  const tenant = parameter(since.tenant);
  const highest = [...floors.values()].reduce((most, floor) => (floor > most ? floor : most), '');
  const isBelow = by === undefined ? ` and ${since.id} || '' < ${parameter(highest)}` : '';
  const rowOf = (named: string) => `select * from ${table} where tenant = ${tenant} and ${id} = ${named}.${id} offset 0`;
  const text = `select known.* from (
      select ${since.id} from ${since.table}
        where tenant = ${tenant} and ${since.position} > ${parameter(position)} and ${since.condition}${isBelow}
      union select unnest(${parameter(returned.map(idAt))}::text[])) named (${id})
    cross join lateral (select ${id}, ${by === undefined ? '' : `${by}, `}${ranked.column} from (${rowOf('named')}) row_of_id where ${conditions}) known`;
  return { text, rowOf };
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
      (${lastText(table, search, parameter)})
    from ${wantedText(search, from, parameter)}`;
  const looking = tx.run(text, firsts);
  if (from === everything) return [looking];
  const below: unknown[] = [];
  const belowParameter = (value: unknown) => `$${below.push(value)}`;
  const conditions = freeSearchSql(search, belowParameter);
  const wanted = wantedText(search, from, belowParameter);
  const belowText = `with returned as materialized (${returnedText(table, search, from, conditions, belowParameter).text})
    select below.place from ${wanted} cross join lateral (select ${placeSql(search)} as place from ${belowFloor(search)}) below`;
  return [looking, tx.run(belowText, below)];
}

/** The query of the last place of all rows of the tenant, also of those that are not free. */
function lastText(table: string, search: FreeSearch, parameter: Parameter): string {
  const { since, id, by } = search;
  const [isPlaced, order] = by === undefined ? ['', `${id} desc`] : [` and ${by} is not null`, `${by} desc, ${id} desc`];
  return `select ${placeSql(search)} from ${table} where tenant = ${parameter(since.tenant)}${isPlaced} order by ${order} limit 1`;
}
