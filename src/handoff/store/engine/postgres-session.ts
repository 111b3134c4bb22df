import type { PostgresTransaction, Row, Values } from '../../../kit/sql/dialect.ts';
import { freeSearchSql } from './free-search.ts';
import type { Session } from './session.ts';

/** A session of a transaction on PostgreSQL, in which each call is one statement. Rows are sent as one JSON parameter. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: one function for each call of a session, each of them a statement.
export function postgresSession(tx: PostgresTransaction): Session {
  const { run, track, requireBegun } = tx;
  const query = (text: string, rows: readonly Row[]) => run(text, [JSON.stringify(rows)]);
  const write = (rows: readonly Row[], textOf: (columns: readonly string[]) => string): void => {
    if (rows.length === 0) return;
    requireBegun();
    track(query(textOf(Object.keys(rows[0]!)), rows));
  };
  const select = async (keys: readonly Row[], textOf: (key: readonly string[]) => string): Promise<Values[]> =>
    keys.length === 0 ? [] : query(textOf(Object.keys(keys[0]!)), keys);
  const given = (table: string) => `json_populate_recordset(null::${table}, $1::json)`;
  const matches = (table: string, key: readonly string[]) => key.map((column) => `${table}.${column} = given.${column}`).join(' and ');
  const insertInto = (table: string, columns: readonly string[], order = '') =>
    `insert into ${table} (${columns.join(', ')}) select ${columns.join(', ')} from ${given(table)}${order}`;
  const upsertInto = (table: string, columns: readonly string[], key: readonly string[]) =>
    `${insertInto(table, columns, ` order by ${key.join(', ')}`)} on conflict (${key.join(', ')}) do update set`;
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
      const place = columns.indexOf('seq');
      return rows.map((row) => [...row, values.get(row[place]!)!]);
    },
    read(table, columns, keys) {
      const equal = (column: string) => (keys[0]![column] === null ? `${table}.${column} is null` : `${table}.${column} = given.${column}`);
      return select(
        keys,
        (key) => `select ${namesIn(table, columns)} from ${table} join ${given(table)} given on ${key.map(equal).join(' and ')}`,
      );
    },
    async findFree(table, columns, search, limit) {
      const [first] = columns as [string];
      const { conditions, values } = freeSearchSql(first, search, (number) => `$${number}`);
      const { column, values: wanted } = search.ranked;
      const [ranked, most] = [`$${values.length + 1}`, `$${values.length + 2}`];
      // The join reads the wanted values in their order and stops at the limit, so that only the rows returned are locked.
      const text = `select ${columns.map((name) => `free.${name}`).join(', ')} from unnest(${ranked}::text[]) wanted (value)
        cross join lateral (select ${columns.join(', ')} from ${table} where ${conditions} and ${column} = wanted.value
          order by ${first}${search.nullsFirst ? ' nulls first' : ''} limit ${most} for update skip locked) free
        limit ${most}`;
      // A plan that sorts reads every matching row, also dead ones. PostgreSQL prefers it when it estimates one row.
      track(run('set local enable_sort = off'));
      const found = run(text, [...values, wanted, limit]);
      track(run('set local enable_sort = on'));
      return found;
    },
    async count(table, keys, condition) {
      const textOf = (key: readonly string[]) => `select (select count(*) from ${table} where ${matches(table, key)} and ${condition})
        from ${given(table)} with ordinality given order by given.ordinality`;
      return (await select(keys, textOf)).map(([count]) => count as number);
    },
    async reserve(table, column, count) {
      if (count === 0) return [];
      const text = 'select nextval(pg_get_serial_sequence($1, $2)) from generate_series(1, $3)';
      return (await run(text, [table, column, count])).map(([number]) => number as number);
    },
    insert: (table, rows) => write(rows, (columns) => insertInto(table, columns)),
    async claim(table, columns, { owner, due, now, until, takes }) {
      if (takes.length === 0) return [];
      requireBegun();
      const text = `with picked as materialized (
          select take.tenant, due_rows.seq from json_to_recordset($1::json) as take (tenant bigint, owner bigint, quota integer)
          cross join lateral (select seq from ${table} where tenant = take.tenant and ${owner} = take.owner and ${due} is not null and ${due} <= $2
            order by ${due} limit take.quota for update skip locked) due_rows)
        update ${table} set ${due} = $3 from picked where ${table}.tenant = picked.tenant and ${table}.seq = picked.seq returning ${namesIn(table, columns)}`;
      const values = [JSON.stringify(takes), now, until];
      return run(text, values);
    },
    insertNumbered(table, rows, { column, owner, counters, name }, last) {
      if (rows.length === 0) return;
      requireBegun();
      const columns = Object.keys(rows[0]!).filter((each) => each !== column);
      // Each row carries its number relative to the owner's last one, which the statement determines.
      const behind = new Map<number, number>();
      const numbered = rows.toReversed().map((row) => {
        const of = row[owner] as number;
        behind.set(of, (behind.get(of) ?? 0) + 1);
        return { ...row, [column]: 1 - behind.get(of)! };
      });
      const text = `with given as (select ${[...columns, column].join(', ')} from ${given(table)}),
        raised as (insert into ${counters} (${owner}, name, value)
          select ${owner}, $2::text, count(*) from given group by ${owner} order by ${owner}
          on conflict (${owner}, name) do update set value = ${counters}.value + excluded.value returning ${owner}, value),
        inserted as (insert into ${table} (${[...columns, column].join(', ')})
          select ${[...columns.map((each) => `given.${each}`), `raised.value + given.${column}`].join(', ')}
          from given join raised on raised.${owner} = given.${owner} order by given.${owner}, given.${column})
        select ${owner}, value from raised`;
      const values = [JSON.stringify(numbered), name];
      track(
        run(text, values).then((raised) => {
          for (const [of, value] of raised as [number, number][]) last.set(of, value);
        }),
      );
    },
    insertMissing(table, rows) {
      if (rows.length === 0) return;
      const columns = Object.keys(rows[0]!);
      track(query(`${insertInto(table, columns, ` order by ${columns.join(', ')}`)} on conflict do nothing`, rows));
    },
    put: (table, key, rows) =>
      write(rows, (columns) => {
        const set = columns.filter((column) => !key.includes(column)).map((column) => `${column} = excluded.${column}`);
        return `${upsertInto(table, columns, key)} ${set.join(', ')}`;
      }),
    update: (table, key, rows) =>
      write(rows, (columns) => {
        const set = columns.filter((column) => !key.includes(column)).map((column) => `${column} = given.${column}`);
        return `update ${table} set ${set.join(', ')} from ${given(table)} given where ${matches(table, key)}`;
      }),
    add: (table, key, column, rows) =>
      write(rows, (columns) => `${upsertInto(table, columns, key)} ${column} = ${table}.${column} + excluded.${column}`),
    remove: (table, keys) => write(keys, (key) => `delete from ${table} using ${given(table)} given where ${matches(table, key)}`),
  };
}
