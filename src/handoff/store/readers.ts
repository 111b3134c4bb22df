import type { Kysely } from 'kysely';

import type { Clock } from '../../kit/clock.ts';
import { FairQueue } from '../../kit/fair-queue.ts';
import { createLanes, type Lane, type Lanes, type Timed, timed } from '../../kit/lanes.ts';
import { isShared, openDatabase } from '../../kit/sql/database.ts';
import type { Database, DatabaseOptions, Execute } from '../../kit/sql/dialect.ts';
import { kyselyOver } from '../../kit/sql/sqlite.ts';
import { startThread, type Thread, type ThreadOptions } from '../../kit/thread.ts';
import { createPageReads, type LargePage, type PacketPage } from './pages.ts';
import { longMs } from './search/pauses.ts';
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
  const entry = new URL(import.meta.url.endsWith('.ts') ? './search/thread.ts' : './search/thread.js', import.meta.url);
  return startThread<SearchTasks>(entry, { databaseUrl }, options);
}

/** A thread for searches and large pages, and for SQLite's other long reads. */
function startReader(databaseUrl: string, options?: ThreadOptions) {
  const thread = startSearchThread(databaseUrl, options);
  return {
    search: (search: Search, signal?: AbortSignal) => thread.call('search', search, signal),
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

/** A database and the lanes for its long reads, which tenants share fairly. */
interface Opened {
  readonly database: Database<Tables>;
  readonly lanes: Lanes<Reader>;
  stopReaders(): Promise<void>;
}

/**
 * Opens the database with a fast and a slow lane for long reads. On SQLite each lane has a thread with one connection,
 * which runs one statement at a time, and the reads of no tenant have a third one. A search that takes long in the fast lane
 * stops there and is repeated in the slow one. On PostgreSQL the threads search and read large pages, each on connections of its own, and the
 * other long reads share a pool. A database in memory has one connection and no thread.
 */
export function openWithReaders(databaseUrl: string, clock: Clock, options: DatabaseOptions = {}): Opened {
  const now = () => clock().getTime();
  const lanesOf = (name: Database<Tables>['name'], lanes: { fast: Lane<Reader>; slow: Lane<Reader> }) =>
    createLanes<Reader>({ ...lanes, longMs: longMs[name], stayMs, clock });
  if (!isShared(databaseUrl)) {
    const database = openDatabase<Tables>(databaseUrl, options);
    const lane = { queue: new FairQueue({ concurrency: 4, perOwner: 1 }), place: readerInPlace(database, now) };
    return { database, lanes: lanesOf('sqlite', { fast: lane, slow: lane }), stopReaders: async () => undefined };
  }
  const fast = startReader(databaseUrl);
  const slow = startReader(databaseUrl, { patient: true });
  // The long reads of the background jobs and of the metrics are no tenant's, and keep none of them waiting.
  const background = startReader(databaseUrl, { patient: true });
  const stopReaders = async () => void (await Promise.all([fast.stop(), slow.stop(), background.stop()]));
  const executeElsewhere: Execute = async (sql, parameters) => (await background.query(sql, parameters)).value;
  const database = openDatabase<Tables>(databaseUrl, { ...options, executeElsewhere });
  if (database.name === 'postgres') {
    const read: Reader['read'] = (work) => timed(now, () => work(database.longReads));
    const lanes = lanesOf('postgres', {
      fast: { queue: new FairQueue({ concurrency: 4, perOwner: 2 }), place: { ...fast, read } },
      slow: { queue: new FairQueue({ concurrency: 2, perOwner: 1 }), place: { ...slow, read } },
    });
    return { database, lanes, stopReaders };
  }
  const searchLong: Reader['search'] = (search, signal) => slow.search({ ...search, wide: true }, signal);
  const lanes = lanesOf('sqlite', {
    fast: { queue: new FairQueue({ concurrency: 1, perOwner: 1 }), place: { ...fast, read: readOn(fast) } },
    // Between two statements of one tenant's read, those of others run.
    slow: { queue: new FairQueue({ concurrency: 4, perOwner: 1 }), place: { ...slow, search: searchLong, read: readOn(slow) } },
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
