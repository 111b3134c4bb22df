import type { Kysely } from 'kysely';

import type { Clock } from '../../kit/clock.ts';
import { FairQueue } from '../../kit/fair-queue.ts';
import { isShared, openDatabase } from '../../kit/sql/database.ts';
import type { Database, DatabaseOptions, Execute } from '../../kit/sql/dialect.ts';
import { type WatchedDatabase, watchSpace } from '../../kit/sql/space.ts';
import { kyselyOver } from '../../kit/sql/sqlite.ts';
import { Thread, type ThreadOptions, threadModule } from '../../kit/thread.ts';
import { type Lane, Lanes, type Timed, timed } from './lanes.ts';
import { createPageReads, type LargePage, type PacketPage } from './pages.ts';
import { longMs } from './search/budget.ts';
import { createSearcher, type EncodedResult, encoded, type Search } from './search/search.ts';
import type { SearchTasks } from './search/thread.ts';
import type { Tables } from './tables.ts';

/** A connection for long reads. */
export interface Reader {
  /** Runs queries. */
  read<T>(work: (db: Kysely<Tables>) => Promise<T>): Promise<Timed<T>>;
  /** `signal`: aborted when the caller's connection closes. */
  search(search: Search, signal?: AbortSignal): Promise<Timed<EncodedResult>>;
  /** Reads and encodes the packets of a large page. */
  largePage(tenant: number, page: PacketPage): Promise<Timed<LargePage>>;
}

/** How long the tenant then stays in the slow lane, in milliseconds. */
const stayMs = 30_000;

/** A thread that indexes and searches the database. It starts at its first task. */
export function startSearchThread(databaseUrl: string, options?: ThreadOptions): Thread<SearchTasks> {
  return new Thread<SearchTasks>(threadModule('search/thread', import.meta.url), { databaseUrl }, options);
}

/** A thread for searches and large pages, and for SQLite's other long reads. `isFast`: its searches have the fast lane's budget. */
function startReader(databaseUrl: string, { isFast = false, ...options }: ThreadOptions & { isFast?: boolean } = {}) {
  const thread = startSearchThread(databaseUrl, options);
  return {
    search: (search: Search, signal?: AbortSignal) => thread.call('search', { search, isFast }, signal),
    largePage: (tenant: number, page: PacketPage) => thread.call('largePage', { tenant, page }),
    query: (sql: string, parameters: readonly unknown[]) => thread.call('read', { sql, parameters }),
    stop: () => thread.stop(),
  };
}

/** Reads on the thread of a SQLite reader. Each read has its own measure, so it is charged with its own queries only. */
function readOn({ query }: ReturnType<typeof startReader>): Reader['read'] {
  return (work) => {
    let tookMs = 0;
    const execute: Execute = async (sql, parameters) => {
      const result = await query(sql, parameters);
      tookMs += result.tookMs;
      return result.value;
    };
    return timed(
      () => tookMs,
      () => work(kyselyOver<Tables>(execute)),
    );
  };
}

/** How many tenants read in SQLite's slow lane at once, each on a thread of its own: SQLite can't interrupt a statement. */
const slowReaders = 4;

/** Runs each read on a reader of its own. The readers are used in the order of the list, so that the last ones seldom start a thread. */
function eachOnItsOwn(readers: readonly Reader[]): Reader {
  const free = readers.toReversed();
  async function on<T>(work: (reader: Reader) => Promise<T>): Promise<T> {
    const reader = free.pop();
    if (reader === undefined) throw new Error('More reads than readers.');
    try {
      return await work(reader);
    } finally {
      free.push(reader);
    }
  }
  return {
    read: (work) => on((reader) => reader.read(work)),
    search: (search, signal) => on((reader) => reader.search(search, signal)),
    largePage: (tenant, page) => on((reader) => reader.largePage(tenant, page)),
  };
}

/** A database and the lanes for its long reads, which tenants share fairly. */
interface Opened {
  readonly database: WatchedDatabase<Tables>;
  readonly lanes: Lanes<Reader>;
  readonly stopReaders: () => Promise<void>;
}

/**
 * Opens the database with a fast and a slow lane for long reads. On SQLite the fast lane has a thread with one connection,
 * which runs one statement at a time; a search that takes long there stops and is repeated in the slow lane, where each of
 * up to four tenants has a thread. On PostgreSQL each lane has a thread that searches and reads large pages on connections of
 * its own, and the other long reads share a pool. A database in memory has one connection and no thread.
 */
export function openWithReaders(databaseUrl: string, clock: Clock, options: DatabaseOptions = {}): Opened {
  const now = () => clock().getTime();
  const lanesOf = (name: Database<Tables>['name'], lanes: { fast: Lane<Reader>; slow: Lane<Reader> }) =>
    new Lanes<Reader>({ ...lanes, longMs: longMs[name], stayMs, clock });
  if (!isShared(databaseUrl)) {
    const database = watchSpace(openDatabase<Tables>(databaseUrl, options), clock);
    const lane = { queue: new FairQueue({ concurrency: 4, perOwner: 1 }), runner: readerInPlace(database, now) };
    return { database, lanes: lanesOf('sqlite', { fast: lane, slow: lane }), stopReaders: async () => undefined };
  }
  // Below the main thread's priority: gets beside ten searches otherwise wait two to three times as long.
  const fast = startReader(databaseUrl, { isFast: true, lowPriority: true });
  const slow = Array.from({ length: slowReaders }, () => startReader(databaseUrl, { lowPriority: true }));
  // The long reads of the background jobs and of the metrics are no tenant's, and keep none of them waiting.
  const background = startReader(databaseUrl, { lowPriority: true });
  const stopReaders = async () => {
    await Promise.all([fast, ...slow, background].map((reader) => reader.stop()));
  };
  const executeElsewhere: Execute = async (sql, parameters) => (await background.query(sql, parameters)).value;
  const database = watchSpace(openDatabase<Tables>(databaseUrl, { ...options, executeElsewhere }), clock);
  if (database.name === 'postgres') {
    const read: Reader['read'] = (work) => timed(now, () => work(database.longReads));
    const lanes = lanesOf('postgres', {
      fast: { queue: new FairQueue({ concurrency: 4, perOwner: 2 }), runner: { ...fast, read } },
      slow: { queue: new FairQueue({ concurrency: 2, perOwner: 1 }), runner: { ...slow[0]!, read } },
    });
    return { database, lanes, stopReaders };
  }
  const withRead = (reader: ReturnType<typeof startReader>): Reader => ({ ...reader, read: readOn(reader) });
  const lanes = lanesOf('sqlite', {
    fast: { queue: new FairQueue({ concurrency: 1, perOwner: 1 }), runner: withRead(fast) },
    slow: { queue: new FairQueue({ concurrency: slowReaders, perOwner: 1 }), runner: eachOnItsOwn(slow.map(withRead)) },
  });
  return { database, lanes, stopReaders };
}

/** Long reads of a database in memory. */
function readerInPlace(database: Database<Tables>, now: () => number): Reader {
  const { longReads: db } = database;
  const searcher = createSearcher(database);
  const pages = createPageReads(database);
  return {
    read: (work) => timed(now, () => work(db)),
    search: (wanted, signal) => timed(now, async () => encoded(await searcher.search(wanted, signal))),
    largePage: (tenant, page) => timed(now, () => pages.largePage(tenant, page, (read) => read(db))),
  };
}
