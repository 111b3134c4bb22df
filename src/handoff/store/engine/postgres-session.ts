import type { PostgresTransaction, Row, Values } from '../../../kit/sql/dialect.ts';
import { findFreeRows } from './postgres-free.ts';
import type { Session } from './session.ts';

/**
 * A session of a transaction on PostgreSQL. Each call is one statement, and rows are sent as one JSON parameter. */
export function postgresSession(tx: PostgresTransaction): Session {
  const query = (text: string, rows: readonly Row[]) => tx.run(text, [JSON.stringify(rows)]);
  const write = (rows: readonly Row[], textOf: (columns: readonly string[]) => string): void => {
    if (rows.length === 0) return;
    tx.requireBegun();
    tx.track(query(textOf(Object.keys(rows[0]!)), rows));
  };
  const select = async (keys: readonly Row[], textOf: (key: readonly string[]) => string): Promise<Values[]> =>
    keys.length === 0 ? [] : query(textOf(Object.keys(keys[0]!)), keys);
  const given = (table: string) => `json_populate_recordset(null::${table}, $1::json)`;
  const matches = (table: string, key: readonly string[]) => key.map((column) => `${table}.${column} = given.${column}`).join(' and ');
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
    const order = key.length === 0 ? '' : ` order by ${key.join(', ')}`;
    tx.track(query(`${insertInto(table, columns, order)}${conflict(columns)}`, rows));
  };
  /** What an upsert does with a row that exists. */
  const onConflict = (key: readonly string[], set: string) => ` on conflict (${key.join(', ')}) do update set ${set}`;
  const namesIn = (table: string, columns: readonly string[]) => columns.map((column) => `${table}.${column}`).join(', ');
  // All instances lock rows in the same order, so that two groups can't deadlock.
  const find: Session['find'] = (table, columns, keys) =>
    select(
      keys,
      (key) =>
        `select ${namesIn(table, columns)} from ${table} join ${given(table)} given on ${matches(table, key)} order by ${namesIn(table, key)} for update of ${table}`,
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
            `select ${more.table}.${more.by}, ${more.table}.${more.column} from ${more.table} join ${table} on ${table}.tenant = ${more.table}.tenant and ${table}.seq = ${more.table}.${more.by} join ${given(table)} given on ${matches(table, key)}`,
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
        (key) => `select ${namesIn(table, columns)} from ${table} join ${given(table)} given on ${key.map(equal).join(' and ')}`,
      );
    },
    findFree: (table, columns, search, limit, beginnings) => findFreeRows(tx, { table, columns, search, limit }, beginnings),
    async count(table, keys) {
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
      const text = `with picked as materialized (
          select take.tenant, due_rows.seq from json_to_recordset($1::json) as take (tenant bigint, owner bigint, quota integer, "from" text)
          cross join lateral (select seq from ${table} where tenant = take.tenant and ${owner} = take.owner and ${due} >= take."from" collate "C" and ${due} <= $2
            order by ${due} limit take.quota for update skip locked) due_rows)
        update ${table} set ${due} = $3 from picked where ${table}.tenant = picked.tenant and ${table}.seq = picked.seq returning ${namesIn(table, columns)}`;
      return tx.run(text, [JSON.stringify(takes), now, until]);
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
        return `update ${table} set ${set.join(', ')} from ${given(table)} given where ${matches(table, key)}`;
      }),
    add(table, key, column, rows) {
      if (rows.length === 0) return;
      tx.requireBegun();
      insert(table, rows, key, () => onConflict(key, `${column} = ${table}.${column} + excluded.${column}`));
    },
    remove: (table, keys) => write(keys, (key) => `delete from ${table} using ${given(table)} given where ${matches(table, key)}`),
  };
}
