import { type Awaitable, andThen, nextTurn } from '../../../kit/awaitable.ts';
import type { Row, SqliteTransaction, Values } from '../../../kit/sql/dialect.ts';
import { freeSearchSql, orderOf } from './free-search.ts';
import type { Session } from './session.ts';

/** The calls of a session, of which each runs after those before it. */
export class Calls {
  #hasEnded = false;
  /** The latest of the writes that continue in later turns. */
  #unfinished: Promise<unknown> | undefined;

  /** Settles when all writes have been executed; undefined when they have. */
  get unfinished(): Promise<unknown> | undefined {
    return this.#unfinished;
  }

  /** Refuses further calls, and stops the writes in progress. */
  end(): void {
    this.#hasEnded = true;
  }

  requireOpen(): void {
    if (this.#hasEnded) throw new Error('The session has ended.');
  }

  /** Runs work after the writes before it, and lets the commit wait for it if it continues in a later turn. */
  inOrder<T>(work: () => Awaitable<T>): Awaitable<T> {
    this.requireOpen();
    const done = this.#unfinished === undefined ? work() : this.#unfinished.then(work);
    if (!(done instanceof Promise)) return done;
    this.#unfinished = done;
    const finish = () => {
      if (this.#unfinished === done) this.#unfinished = undefined;
    };
    // After a failure it stays: later calls and the commit fail as well.
    done.then(finish, () => undefined);
    return done;
  }
}

/** A session of a transaction on SQLite: each call is a loop over one prepared statement. */
export function sqliteSession(tx: SqliteTransaction, calls: Calls, charactersPerTurn: number): Session {
  const inOrder = <T>(work: () => Awaitable<T>): Awaitable<T> => calls.inOrder(work);
  const valuesStatement = (sql: string) => {
    calls.requireOpen();
    return tx.valuesStatement(sql);
  };
  const writeFrom = (sql: string, rows: readonly Row[], columns: readonly string[], first: number): Awaitable<void> => {
    calls.requireOpen();
    const statement = tx.statement(sql);
    const values: Row[string][] = [];
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
  const writeInOrder = (work: () => Awaitable<void>): void => {
    const done = inOrder(work);
    if (done instanceof Promise) done.catch(() => undefined);
  };
  type SqlOf = (columns: readonly string[]) => string;
  /** Runs a statement for each of the rows, with the values of their columns as its parameters. */
  const writeNow = (rows: readonly Row[], sqlOf: SqlOf): Awaitable<void> => {
    const columns = Object.keys(rows[0]!);
    return writeFrom(sqlOf(columns), rows, columns, 0);
  };
  const write = (rows: readonly Row[], sqlOf: SqlOf): void => {
    if (rows.length > 0) writeInOrder(() => writeNow(rows, sqlOf));
  };
  /** What a statement finds for each of the keys. `whereOf` writes the condition, with the names of the columns after `prefix`. */
  const selectNow = (keys: readonly Row[], sqlOf: (whereOf: (prefix?: string) => string) => string): Values[] => {
    const key = Object.entries(keys[0]!);
    const whereOf = (prefix = '') => key.map(([column, value]) => `${prefix}${column} ${value === null ? 'is null' : '= ?'}`).join(' and ');
    const statement = valuesStatement(sqlOf(whereOf));
    const given = key.flatMap(([column, value]) => (value === null ? [] : [column]));
    const found: Values[] = [];
    for (const row of keys) for (const one of statement.all(...given.map((column) => row[column]!))) found.push(one as unknown as Values);
    return found;
  };
  const select: (...wanted: Parameters<typeof selectNow>) => Awaitable<Values[]> = (keys, sqlOf) =>
    keys.length === 0 ? [] : inOrder(() => selectNow(keys, sqlOf));
  const insertInto = (table: string, columns: readonly string[], verb = 'insert') =>
    `${verb} into ${table} (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})`;
  // SQLite runs one write transaction at a time, so no row is locked by another.
  const find: Session['find'] = (table, columns, keys) =>
    select(keys, (whereOf) => `select ${columns.join(', ')} from ${table} where ${whereOf()}`);

  return {
    name: 'sqlite',
    begun: undefined,
    find,
    read: find,
    findWith(table, columns, more, keys) {
      const wanted = [...columns.map((column) => `${table}.${column}`), `${more.table}.${more.column}`].join(', ');
      const joined = `${table} join ${more.table} on ${more.table}.tenant = ${table}.tenant and ${more.table}.${more.by} = ${table}.seq`;
      return select(keys, (whereOf) => `select ${wanted} from ${joined} where ${whereOf(`${table}.`)}`);
    },
    findFree(table, columns, search, limit) {
      return inOrder(() => {
        const values: (string | number)[] = [];
        const conditions = freeSearchSql(search, (value) => {
          values.push(value);
          return '?';
        });
        const { column, values: wanted } = search.ranked;
        const statement = valuesStatement(
          `select ${columns.join(', ')} from ${table} where ${conditions} and ${column} = ? order by ${orderOf(search)} limit cast(? as integer)`,
        );
        const found: Values[] = [];
        for (const value of wanted) {
          if (found.length === limit) break;
          found.push(...(statement.all(...values, value, limit - found.length) as unknown as Values[]));
        }
        return found;
      });
    },
    count: (table, keys) =>
      andThen(
        select(keys, (whereOf) => `select count(*) from ${table} where ${whereOf()}`),
        (rows) => rows.map(([count]) => count as number),
      ),
    reserve(table, _column, count) {
      return inOrder(() => {
        if (count === 0) return [];
        // SQLite keeps the highest value of each `autoincrement` column here.
        const found = valuesStatement('select seq from sqlite_sequence where name = ?').get(table) as unknown as [number] | undefined;
        const last = found?.[0] ?? 0;
        if (found === undefined) tx.statement('insert into sqlite_sequence (name, seq) values (?, ?)').run(table, count);
        else tx.statement('update sqlite_sequence set seq = ? where name = ?').run(last + count, table);
        return Array.from({ length: count }, (_, index) => last + 1 + index);
      });
    },
    insert: (table, rows) => write(rows, (columns) => insertInto(table, columns)),
    claim(table, columns, { owner, due, now, until, takes }) {
      return inOrder(() => {
        const found = valuesStatement(
          `select tenant, seq, ${columns.join(', ')} from ${table} where tenant = ? and ${owner} = ? and ${due} >= ? and ${due} <= ? order by ${due} limit cast(? as integer)`,
        );
        const rows = takes.flatMap((take) => found.all(take.tenant, take.owner, take.from, now, take.quota) as unknown as Values[]);
        for (const [tenant, seq] of rows)
          tx.statement(`update ${table} set ${due} = ? where tenant = ? and seq = ?`).run(until, tenant!, seq!);
        return rows.map(([, , ...values]) => values);
      });
    },
    insertMissing: (table, rows) => write(rows, (columns) => insertInto(table, columns, 'insert or ignore')),
    put(table, key, rows) {
      const setOf = (columns: readonly string[]) =>
        columns.filter((column) => !key.includes(column)).map((column) => `${column} = excluded.${column}`);
      return write(
        rows,
        (columns) => `${insertInto(table, columns)} on conflict (${key.join(', ')}) do update set ${setOf(columns).join(', ')}`,
      );
    },
    update(table, key, rows) {
      return write(rows, (columns) => {
        const equals = (column: string) => `${column} = ?${columns.indexOf(column) + 1}`;
        const others = columns.filter((column) => !key.includes(column));
        return `update ${table} set ${others.map(equals).join(', ')} where ${key.map(equals).join(' and ')}`;
      });
    },
    add(table, key, column, rows) {
      const added = `on conflict (${key.join(', ')}) do update set ${column} = ${column} + excluded.${column}`;
      return write(rows, (columns) => `${insertInto(table, columns)} ${added}`);
    },
    remove: (table, keys) =>
      write(keys, (columns) => `delete from ${table} where ${columns.map((column) => `${column} = ?`).join(' and ')}`),
  };
}
