import type { PostgresTransaction, Row, Values } from '../../../kit/sql/dialect.ts';
import { findFreeRows } from './postgres-free.ts';
import type { Session, Take } from './session.ts';

/** How many parameters a statement may have. */
const maxParameters = 60_000;

/** The rows of each tenant, in the order of tenants; rows of no tenant stay together. */
function byTenant<Of extends Row>(rows: readonly Of[]): (readonly Of[])[] {
  if (rows.length < 2) return rows.length === 0 ? [] : [rows];
  return [...Map.groupBy(rows, ({ tenant }) => tenant as number | undefined)]
    .sort(([one = 0], [other = 0]) => one - other)
    .map(([, own]) => own);
}

/** Compares rows by the values of a key, one column after another. */
function comparing(key: readonly string[]): (one: Row, other: Row) => number {
  return (one, other) => {
    const column = key.find((name) => one[name] !== other[name]);
    return column === undefined ? 0 : one[column]! < other[column]! ? -1 : 1;
  };
}

/**
 * A session of a transaction on PostgreSQL. Each call is one statement, and rows are sent as one JSON parameter. On a cluster it is
 * one statement for each tenant, which names the tenant, so that it concerns one server; new rows are sent as lists of values
 * there, since the coordinator copies the rows of `insert ... select`, which takes ten times as long.
 */
export function postgresSession(tx: PostgresTransaction): Session {
  const { isDistributed } = tx;
  const parts = <Of extends Row>(rows: readonly Of[]) => (isDistributed ? byTenant(rows) : rows.length === 0 ? [] : [rows]);
  const query = (text: string, rows: readonly Row[]) => {
    const { tenant } = isDistributed ? rows[0]! : {};
    return tx.run(text, tenant === undefined ? [JSON.stringify(rows)] : [JSON.stringify(rows), tenant]);
  };
  const write = (rows: readonly Row[], textOf: (columns: readonly string[]) => string): void => {
    if (rows.length === 0) return;
    tx.requireBegun();
    for (const own of parts(rows)) tx.track(query(textOf(Object.keys(own[0]!)), own));
  };
  const select = async (keys: readonly Row[], textOf: (key: readonly string[]) => string): Promise<Values[]> => {
    const [first, ...rest] = parts(keys).map((own) => query(textOf(Object.keys(own[0]!)), own));
    if (first === undefined || rest.length === 0) return first ?? [];
    return (await Promise.all([first, ...rest])).flat();
  };
  const given = (table: string) => `json_populate_recordset(null::${table}, $1::json)`;
  const matches = (table: string, key: readonly string[]) => key.map((column) => `${table}.${column} = given.${column}`).join(' and ');
  /** The condition that rows with this key are of the tenant of the statement. */
  const ofTenant = (word: 'where' | 'and', table: string, key: readonly string[]) =>
    isDistributed && key.includes('tenant') ? ` ${word} ${table}.tenant = $2` : '';
  const insertInto = (table: string, columns: readonly string[], order = '') =>
    `insert into ${table} (${columns.join(', ')}) select ${columns.join(', ')} from ${given(table)}${order}`;
  /** Inserts rows, in the order of the key if there is one, in which all instances lock them. */
  const insert = (
    table: string,
    rows: readonly Row[],
    key: readonly string[] = [],
    conflict: (columns: readonly string[]) => string = () => '',
  ) => {
    if (rows.length === 0) return;
    const columns = Object.keys(rows[0]!);
    if (!isDistributed || !columns.includes('tenant')) {
      const order = key.length === 0 ? '' : ` order by ${key.join(', ')}`;
      tx.track(query(`${insertInto(table, columns, order)}${conflict(columns)}`, rows));
      return;
    }
    const most = Math.floor(maxParameters / columns.length);
    for (const own of byTenant(rows)) {
      const sorted = key.length === 0 ? own : own.toSorted(comparing(key));
      for (let from = 0; from < sorted.length; from += most) {
        const some = sorted.slice(from, from + most);
        const placeholders = (row: number) => `(${columns.map((_, column) => `$${row * columns.length + column + 1}`).join(', ')})`;
        const lists = some.map((_, row) => placeholders(row)).join(', ');
        const values = some.flatMap((row) => columns.map((column) => row[column]!));
        tx.track(tx.run(`insert into ${table} (${columns.join(', ')}) values ${lists}${conflict(columns)}`, values));
      }
    }
  };
  /** What an upsert does with a row that exists. */
  const onConflict = (key: readonly string[], set: string) => ` on conflict (${key.join(', ')}) do update set ${set}`;
  const namesIn = (table: string, columns: readonly string[]) => columns.map((column) => `${table}.${column}`).join(', ');
  // All instances lock rows in the same order, so that two groups can't deadlock.
  const find: Session['find'] = (table, columns, keys) =>
    select(
      keys,
      (key) =>
        `select ${namesIn(table, columns)} from ${table} join ${given(table)} given on ${matches(table, key)}${ofTenant('where', table, key)} order by ${namesIn(table, key)} for update of ${table}`,
    );

  return {
    name: 'postgres',
    begun: tx.begun,
    find,
    async findWith(table, columns, more, keys) {
      // Sent together, as two statements: the second sees what was written by the transaction for whose lock the first waited.
      const [rows, others] = await Promise.all([
        find(table, columns, keys),
        select(
          keys,
          (key) =>
            `select ${more.table}.${more.by}, ${more.table}.${more.column} from ${more.table} join ${table} on ${table}.tenant = ${more.table}.tenant and ${table}.seq = ${more.table}.${more.by} join ${given(table)} given on ${matches(table, key)}${ofTenant('where', table, key)}`,
        ),
      ]);
      const values = new Map(others.map(([seq, value]) => [seq, value]));
      const index = columns.indexOf('seq');
      return rows.map((row) => [...row, values.get(row[index]!)!]);
    },
    read(table, columns, keys) {
      const equal = (column: string) => (keys[0]![column] === null ? `${table}.${column} is null` : `${table}.${column} = given.${column}`);
      return select(
        keys,
        (key) =>
          `select ${namesIn(table, columns)} from ${table} join ${given(table)} given on ${key.map(equal).join(' and ')}${ofTenant('where', table, key)}`,
      );
    },
    findFree: (table, columns, search, limit, beginnings) => findFreeRows(tx, { table, columns, search, limit }, beginnings),
    async count(table, keys) {
      if (isDistributed) {
        // A cluster can't count for each given row, only what matches one.
        const placeOf = (values: Values) => JSON.stringify(values);
        const different = [...new Map(keys.map((key) => [placeOf(Object.values(key)), key])).values()];
        const counts = await select(
          different,
          (key) =>
            `select ${namesIn(table, key)}, count(*) from ${table} join ${given(table)} given on ${matches(table, key)}${ofTenant('where', table, key)} group by ${namesIn(table, key)}`,
        );
        const found = new Map(counts.map((row) => [placeOf(row.slice(0, -1)), row.at(-1) as number]));
        return keys.map((key) => found.get(placeOf(Object.values(key))) ?? 0);
      }
      const textOf = (key: readonly string[]) => `select (select count(*) from ${table} where ${matches(table, key)})
        from ${given(table)} with ordinality given order by given.ordinality`;
      return (await select(keys, textOf)).map(([count]) => count as number);
    },
    async reserve(table, column, count) {
      if (count === 0) return [];
      const text = 'select nextval(pg_get_serial_sequence($1, $2)) from generate_series(1, $3)';
      return (await tx.run(text, [table, column, count])).map(([number]) => number as number);
    },
    insert(table, rows) {
      if (rows.length === 0) return;
      tx.requireBegun();
      insert(table, rows);
    },
    async claim(table, columns, { owner, due, now, until, takes }) {
      if (takes.length === 0) return [];
      tx.requireBegun();
      // Of all tenants, or on a cluster of one, which is then the parameter $4.
      const of = (column: string) => (isDistributed ? ` and ${column} = $4` : '');
      const text = `with picked as materialized (
          select take.tenant, due_rows.seq from json_to_recordset($1::json) as take (tenant bigint, owner bigint, quota integer)
          cross join lateral (select seq from ${table} where tenant = take.tenant${of('tenant')} and ${owner} = take.owner and ${due} is not null and ${due} <= $2
            order by ${due} limit take.quota for update skip locked) due_rows)
        update ${table} set ${due} = $3 from picked where ${table}.tenant = picked.tenant and ${table}.seq = picked.seq${of(`${table}.tenant`)} returning ${namesIn(table, columns)}`;
      if (!isDistributed) return tx.run(text, [JSON.stringify(takes), now, until]);
      const claimed = byTenant(takes as readonly (Take & Row)[]).map((own) =>
        tx.run(text, [JSON.stringify(own), now, until, own[0]!.tenant]),
      );
      return (await Promise.all(claimed)).flat();
    },
    insertMissing(table, rows) {
      if (rows.length === 0) return;
      insert(table, rows, Object.keys(rows[0]!), () => ' on conflict do nothing');
    },
    put(table, key, rows) {
      if (rows.length === 0) return;
      tx.requireBegun();
      const set = (columns: readonly string[]) =>
        columns.filter((column) => !key.includes(column)).map((column) => `${column} = excluded.${column}`);
      insert(table, rows, key, (columns) => onConflict(key, set(columns).join(', ')));
    },
    update: (table, key, rows) =>
      write(rows, (columns) => {
        const set = columns.filter((column) => !key.includes(column)).map((column) => `${column} = given.${column}`);
        return `update ${table} set ${set.join(', ')} from ${given(table)} given where ${matches(table, key)}${ofTenant('and', table, key)}`;
      }),
    add(table, key, column, rows) {
      if (rows.length === 0) return;
      tx.requireBegun();
      insert(table, rows, key, () => onConflict(key, `${column} = ${table}.${column} + excluded.${column}`));
    },
    remove: (table, keys) =>
      write(keys, (key) => `delete from ${table} using ${given(table)} given where ${matches(table, key)}${ofTenant('and', table, key)}`),
  };
}
