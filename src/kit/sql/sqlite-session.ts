import type { SQLInputValue } from 'node:sqlite';

import { type Awaitable, nextTurn } from '../awaitable.ts';
import { freeSearchSql, type Row, type Session, type Values } from './dialect.ts';
import type { SqliteConnection } from './sqlite-connection.ts';

/** A session in which each call is a loop over one prepared statement, and how its transaction waits for it. */
interface SqliteSession extends Session {
  /** Resolves when all writes have been executed. */
  written(): Promise<unknown>;
  /** Refuses further calls, and stops the writes in progress. */
  end(): void;
}

/** A session on a connection that has begun a transaction. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: one function for each call of a session, each of them a statement.
export function sqliteSession(connection: SqliteConnection, charactersPerTurn: number): SqliteSession {
  let ended = false;
  const running: Promise<void>[] = [];

  const requireOpen = () => {
    if (ended) throw new Error('The session has ended.');
  };
  const valuesStatement = (sql: string) => {
    requireOpen();
    return connection.valuesStatement(sql);
  };
  const writeFrom = (sql: string, rows: readonly Row[], columns: readonly string[], first: number): Awaitable<void> => {
    requireOpen();
    const statement = connection.statement(sql);
    const values: SQLInputValue[] = [];
    let length = 0;
    for (let at = first; at < rows.length; at += 1) {
      if (length > charactersPerTurn) return nextTurn().then(() => writeFrom(sql, rows, columns, at));
      const row = rows[at]!;
      for (let index = 0; index < columns.length; index += 1) {
        const value = row[columns[index]!] ?? null;
        if (typeof value === 'string') length += value.length;
        values[index] = value;
      }
      statement.run(...values);
    }
  };
  /** Lets the commit wait for a write that continues in a later turn. */
  const track = (written: Awaitable<void>): Awaitable<void> => {
    if (!(written instanceof Promise)) return;
    written.catch(() => undefined);
    running.push(written);
    return written;
  };
  const each = (sql: string, rows: readonly Row[], columns: readonly string[]) => track(writeFrom(sql, rows, columns, 0));
  const insertInto = (table: string, columns: readonly string[], verb = 'insert') =>
    `${verb} into ${table} (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})`;

  const find: Session['find'] = (table, columns, keys) => {
    if (keys.length === 0) return [];
    const key = Object.keys(keys[0]!);
    const statement = valuesStatement(`select ${columns.join(', ')} from ${table} where ${equals(key)}`);
    const found: Values[] = [];
    for (const row of keys) for (const one of statement.all(...key.map((column) => row[column]!))) found.push(one as unknown as Values);
    return found;
  };

  return {
    begun: undefined,
    written: () => Promise.all(running),
    end() {
      ended = true;
    },
    find,
    belonging(table, columns, by, owner, keys) {
      if (keys.length === 0) return [];
      const key = Object.keys(keys[0]!);
      const wanted = columns.map((column) => `${table}.${column}`).join(', ');
      const own = key.map((column) => `${owner}.${column} = ?`).join(' and ');
      const statement = valuesStatement(`select ${wanted} from ${owner} join ${table} on ${table}.${by} = ${owner}.seq where ${own}`);
      return keys.flatMap((row) => statement.all(...key.map((column) => row[column]!)) as unknown as Values[]);
    },
    read(table, columns, keys) {
      if (keys.length === 0) return [];
      const key = Object.entries(keys[0]!);
      const where = key.map(([column, value]) => (value === null ? `${column} is null` : `${column} = ?`)).join(' and ');
      const given = key.filter(([, value]) => value !== null).map(([column]) => column);
      const statement = valuesStatement(`select ${columns.join(', ')} from ${table} where ${where}`);
      return keys.flatMap((row) => statement.all(...given.map((column) => row[column]!)) as unknown as Values[]);
    },
    findFree(table, columns, search, limit) {
      // SQLite runs one write transaction at a time, so no row is locked by another.
      const [first] = columns as [string];
      const { conditions, values } = freeSearchSql(first, search, () => '?');
      const { column, values: wanted } = search.ranked;
      const statement = valuesStatement(
        `select ${columns.join(', ')} from ${table} where ${conditions} and ${column} = ? order by ${first} limit cast(? as integer)`,
      );
      const found: Values[] = [];
      for (const value of wanted) {
        if (found.length === limit) break;
        found.push(...(statement.all(...values, value, limit - found.length) as unknown as Values[]));
      }
      return found;
    },
    count(table, keys, condition) {
      if (keys.length === 0) return [];
      const key = Object.keys(keys[0]!);
      const statement = valuesStatement(`select count(*) from ${table} where ${equals(key)} and ${condition}`);
      return keys.map((row) => (statement.get(...key.map((column) => row[column]!)) as unknown as [number])[0]);
    },
    reserve(table, _column, count) {
      if (count === 0) return [];
      // SQLite keeps the highest value of each `autoincrement` column here.
      const found = valuesStatement('select seq from sqlite_sequence where name = ?').get(table) as unknown as [number] | undefined;
      const last = found?.[0] ?? 0;
      if (found === undefined) connection.run('insert into sqlite_sequence (name, seq) values (?, ?)', [table, count]);
      else connection.run('update sqlite_sequence set seq = ? where name = ?', [last + count, table]);
      return Array.from({ length: count }, (_, index) => last + 1 + index);
    },
    insert(table, rows) {
      if (rows.length === 0) return;
      const columns = Object.keys(rows[0]!);
      return each(insertInto(table, columns), rows, columns);
    },
    claim(table, columns, { owner, due, now, until, takes }) {
      const found = valuesStatement(
        `select seq, ${columns.join(', ')} from ${table} where ${owner} = ? and ${due} is not null and ${due} <= ? order by ${due} limit ?`,
      );
      const rows = takes.flatMap((take) => found.all(take.owner, now, take.quota) as unknown as Values[]);
      for (const [seq] of rows) connection.run(`update ${table} set ${due} = ? where seq = ?`, [until, seq]);
      return rows.map(([, ...values]) => values);
    },
    async insertNumbered(table, rows, { column, owner, counters, name }, last) {
      if (rows.length === 0) return;
      const found = valuesStatement(`select value from ${counters} where ${owner} = ? and name = ?`);
      const numbered = rows.map((row) => {
        const of = row[owner] as number;
        const before = last.get(of) ?? (found.get(of, name) as unknown as [number] | undefined)?.[0] ?? 0;
        last.set(of, before + 1);
        return { ...row, [column]: before + 1 };
      });
      const raised = [...last].map(([of, value]) => ({ [owner]: of, name, value }));
      const raise = `${insertInto(counters, [owner, 'name', 'value'])} on conflict (${owner}, name) do update set value = excluded.value`;
      await each(raise, raised, [owner, 'name', 'value']);
      const columns = Object.keys(numbered[0]!);
      await each(insertInto(table, columns), numbered, columns);
    },
    insertMissing(table, rows) {
      if (rows.length === 0) return;
      const columns = Object.keys(rows[0]!);
      return each(insertInto(table, columns, 'insert or ignore'), rows, columns);
    },
    put(table, key, rows) {
      if (rows.length === 0) return;
      const columns = Object.keys(rows[0]!);
      const others = columns.filter((column) => !key.includes(column));
      const set = others.map((column) => `${column} = excluded.${column}`).join(', ');
      return each(`${insertInto(table, columns)} on conflict (${key.join(', ')}) do update set ${set}`, rows, columns);
    },
    update(table, key, rows) {
      if (rows.length === 0) return;
      const others = Object.keys(rows[0]!).filter((column) => !key.includes(column));
      const set = others.map((column) => `${column} = ?`).join(', ');
      return each(`update ${table} set ${set} where ${equals(key)}`, rows, [...others, ...key]);
    },
    add(table, key, column, rows) {
      if (rows.length === 0) return;
      const sql = `${insertInto(table, [...key, column])} on conflict (${key.join(', ')}) do update set ${column} = ${column} + excluded.${column}`;
      return each(sql, rows, [...key, column]);
    },
    remove(table, keys) {
      if (keys.length === 0) return;
      const key = Object.keys(keys[0]!);
      return each(`delete from ${table} where ${equals(key)}`, keys, key);
    },
  };
}

function equals(columns: readonly string[]): string {
  return columns.map((column) => `${column} = ?`).join(' and ');
}
