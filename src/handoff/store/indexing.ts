import type { Database } from '../../kit/sql/dialect.ts';
import { Turns } from '../../kit/sql/dialect.ts';
import type { Thread } from '../../kit/thread.ts';
import { createIndexer } from './search.ts';
import type { SearchTasks } from './search-thread.ts';
import type { Tables } from './tables.ts';

/** How many queued packets one step takes. */
const stepSize = 200;

/** What one step of indexing did. */
export interface IndexStep {
  /** How many queued packets it looked at. */
  readonly taken: number;
  /** Packets that are in the index now, or gone. */
  readonly settled: readonly string[];
  /** Packets that the database would not index; they are off the queue and can't be found. */
  readonly refused: readonly string[];
}

/** Writes the search index behind the packets, on the thread beside the service where there is one. */
export function createIndexing(database: Database<Tables>, thread: Thread<SearchTasks> | undefined) {
  const here = createIndexer(database);
  const turns = new Turns();

  /** One step, for one tenant or for all; steps come one after the other. */
  function step(tenantId?: string): Promise<IndexStep> {
    const which = { limit: stepSize, ...(tenantId === undefined ? {} : { tenantId }) };
    return turns.take(async () => {
      const taken = await (thread === undefined ? here.prepare(which) : thread.call('prepare', which));
      if (taken === 0) return { taken, settled: [], refused: [] };
      // SQLite has one writer: the thread writes in a turn of ours, so that neither ever waits inside the database.
      const written = thread === undefined ? here.write() : database.turn(() => thread.call('write', {}));
      return { taken, ...(await written) };
    });
  }

  return {
    step,
    /** Indexes what was queued for the tenant when it was called. */
    async all(tenantId: string): Promise<void> {
      const queued = await database.reads.selectFrom('search_queue').select('packet_id').where('tenant_id', '=', tenantId).execute();
      const left = new Set(queued.map(({ packet_id }) => packet_id));
      // A packet that changes while it is indexed is taken again; one that another instance settles is never taken.
      for (let taken = 1; left.size > 0 && taken > 0; ) {
        const done = await step(tenantId);
        taken = done.taken;
        for (const id of [...done.settled, ...done.refused]) left.delete(id);
      }
    },
    idle: () => turns.idle(),
  };
}
