import type { Kysely } from 'kysely';

import { FairQueue } from '../../kit/fair-queue.ts';
import { createLanes, type Lanes } from '../../kit/lanes.ts';
import { isShared, openDatabase } from '../../kit/sql/database.ts';
import type { Database, Execute } from '../../kit/sql/dialect.ts';
import { kyselyOver } from '../../kit/sql/sqlite.ts';
import { startThread, type Thread, type ThreadOptions } from '../../kit/thread.ts';
import { createPageReads, type LargePage, type PacketPage } from './pages.ts';
import { createSearcher, type EncodedResult, encoded, type Search } from './search.ts';
import type { SearchTasks, Timed } from './search-thread.ts';
import type { Tables } from './tables.ts';

/** A connection for long reads. */
export interface Reader {
  readonly db: Kysely<Tables>;
  /** `signal`: aborted when the caller's connection closes. */
  search(search: Search, signal?: AbortSignal): Promise<EncodedResult>;
  /** Reads and encodes the packets of a large page. */
  largePage(tenant: number, page: PacketPage): Promise<LargePage>;
}

/** A read that takes longer than this sends its tenant to the slow lane, in milliseconds: CPU time on SQLite, elapsed time on PostgreSQL. */
const longMs = { sqlite: 50, postgres: 200 };

/** How long the tenant then stays in the slow lane, in milliseconds. */
const stayMs = 30_000;

/** A thread that indexes and searches the database. It starts at its first task. */
export function startSearchThread(databaseUrl: string, options?: ThreadOptions): Thread<SearchTasks> {
  const entry = new URL(import.meta.url.endsWith('.ts') ? './search-thread.ts' : './search-thread.js', import.meta.url);
  return startThread<SearchTasks>(entry, { databaseUrl }, options);
}

/** A thread for searches and SQLite's other long reads. It measures their CPU time, which does not depend on the load of the machine. */
function startReadingThread(databaseUrl: string, options?: ThreadOptions) {
  const thread = startSearchThread(databaseUrl, options);
  let spentMs = 0;
  const noted = <T>({ value, spentMs: ofTask }: Timed<T>): T => {
    spentMs += ofTask;
    return value;
  };
  const execute: Execute = async (sql, parameters) => noted(await thread.call('read', { sql, parameters }));
  return {
    execute,
    search: async (search: Search, signal?: AbortSignal) => noted(await thread.call('search', search, signal)),
    largePage: async (tenant: number, page: PacketPage) => noted(await thread.call('largePage', { tenant, page })),
    spentMs: () => spentMs,
    stop: () => thread.stop(),
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
 * which runs one read at a time. On PostgreSQL the threads search, each on connections of its own, and the other long reads
 * share a pool. A database in memory has one connection and no thread.
 */
export function openWithReaders(databaseUrl: string): Opened {
  const now = () => performance.now();
  if (!isShared(databaseUrl)) {
    const database = openDatabase<Tables>(databaseUrl);
    const searcher = createSearcher(database);
    const search: Reader['search'] = async (wanted, signal) => encoded(await searcher.search(wanted, signal));
    const { longReads: db } = database;
    const pages = createPageReads(database);
    const largePage: Reader['largePage'] = (tenant, page) => pages.largePage(tenant, page, (read) => read(db));
    const place = { db, search, largePage };
    const lane = { queue: new FairQueue({ concurrency: 4, perOwner: 1 }), place, spentMs: now };
    const lanes = createLanes<Reader>({ fast: lane, slow: lane, longMs: longMs.sqlite, stayMs, now });
    return { database, lanes, stopReaders: async () => undefined };
  }
  const fast = startReadingThread(databaseUrl);
  const slow = startReadingThread(databaseUrl, { patient: true });
  const stopReaders = async () => void (await Promise.all([fast.stop(), slow.stop()]));
  const database = openDatabase<Tables>(databaseUrl, { executeElsewhere: fast.execute });
  if (database.name === 'postgres') {
    const laneOf = ({ search, largePage }: typeof fast, queue: FairQueue) => ({
      queue,
      place: { db: database.longReads, search, largePage },
      spentMs: now,
    });
    const lanes = createLanes<Reader>({
      fast: laneOf(fast, new FairQueue({ concurrency: 4, perOwner: 2 })),
      slow: laneOf(slow, new FairQueue({ concurrency: 2, perOwner: 1 })),
      longMs: longMs.postgres,
      stayMs,
      now,
    });
    return { database, lanes, stopReaders };
  }
  const laneOf = ({ search, largePage, spentMs }: typeof fast, db: Kysely<Tables>) => ({
    queue: new FairQueue({ concurrency: 1, perOwner: 1 }),
    place: { db, search, largePage },
    spentMs,
  });
  const lanes = createLanes<Reader>({
    fast: laneOf(fast, database.longReads),
    slow: laneOf(slow, kyselyOver<Tables>(slow.execute)),
    longMs: longMs.sqlite,
    stayMs,
    now,
  });
  return { database, lanes, stopReaders };
}
