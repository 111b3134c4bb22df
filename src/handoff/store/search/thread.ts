import { CompiledQuery, type QueryResult, sql } from 'kysely';
import { openDatabase } from '../../../kit/sql/database.ts';
import type { Row } from '../../../kit/sql/dialect.ts';
import { serveTasks, threadData } from '../../../kit/thread.ts';
import { timed } from '../lanes.ts';
import { createPageReads, type PacketPage } from '../pages.ts';
import type { Tables } from '../tables.ts';
import { Budget, fastLane, unlimited } from './budget.ts';
import { Indexer, type Range } from './indexer.ts';
import { createSearcher, encoded, type Search } from './search.ts';

/**
 * The entry module of the store's worker threads. One updates the search index. Others search and read large pages; on
 * SQLite they also run the other long reads (counting, deep offsets).
 */
const { databaseUrl } = threadData<{ databaseUrl: string }>();
// A PostgreSQL search that takes longer than a second is answered by scanning the newest packets instead.
const database = openDatabase<Tables>(databaseUrl, { longTimeoutMs: 1_000, byIndex: true });
// These reads scan pages that are rarely needed again, so a large cache would not help.
if (database.name === 'sqlite') await sql`pragma cache_size = -4096`.execute(database.reads);
const indexer = new Indexer(database);
const pages = createPageReads(database);

/** The thread's CPU time, which does not depend on the load of the machine. */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

// On SQLite the read is the thread's own work; it is measured without the reads that run in its pauses.
const clock = database.name === 'sqlite' ? cpuMs : () => performance.now();

const tasks = {
  prepare: (range: Range) => indexer.prepare(range),
  write: (_: Record<string, never>) => indexer.write(),
  async search({ search, isFast }: { search: Search; isFast: boolean }, signal: AbortSignal) {
    const budget = new Budget(isFast && database.name === 'sqlite' ? fastLane : unlimited, clock);
    const value = encoded(await createSearcher(database, undefined, budget).search(search, signal));
    return { value, tookMs: budget.usedMs };
  },
  async largePage({ tenant, page }: { tenant: number; page: PacketPage }) {
    let tookMs = 0;
    const value = await pages.largePage(tenant, page, async (read) => {
      const part = await timed(clock, () => read(database.reads));
      tookMs += part.tookMs;
      return part.value;
    });
    return { value, tookMs };
  },
  read: ({ sql, parameters }: { sql: string; parameters: readonly unknown[] }) =>
    timed(clock, () => database.reads.executeQuery(CompiledQuery.raw(sql, [...parameters])) as Promise<QueryResult<Row>>),
};

/** The tasks of the thread. */
export type SearchTasks = typeof tasks;

serveTasks(tasks);
