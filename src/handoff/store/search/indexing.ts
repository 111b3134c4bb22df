import { sharing } from '../../../kit/sharing.ts';
import { type Database, SerialQueue } from '../../../kit/sql/dialect.ts';
import type { Thread } from '../../../kit/thread.ts';
import { type DueTenants, tenantsOf } from '../due.ts';
import type { Tables } from '../tables.ts';
import { createIndexer, type QueuePosition, type Range, type Written } from './indexer.ts';
import type { SearchTasks } from './thread.ts';

/** What one step of indexing did. */
export interface IndexStep extends Written {
  /** How many queued packets it took. */
  readonly taken: number;
  /** Whether it left some for another step. */
  readonly more: boolean;
}

export type Indexing = ReturnType<typeof createIndexing>;

/** Updates the search index asynchronously, on the search thread where there is one. */
export function createIndexing(database: Database<Tables>, thread: Thread<SearchTasks> | undefined, due: DueTenants) {
  const here = createIndexer(database);
  const lastQueued = database.query<{ tenant: number }, QueuePosition>((db, { tenant }) =>
    db.selectFrom('search_queue').select(['tenant', 'packet']).where('tenant', '=', tenant).orderBy('packet', 'desc').limit(1),
  );
  const firstQueued = database.query<Record<string, never>, { packet: number }>((db) =>
    db.selectFrom('search_queue').select('packet').limit(1),
  );
  const queue = new SerialQueue();
  const nothing = { taken: 0, more: false, refused: [], reached: undefined };
  let stopped = false;
  let isPreparing = false;

  async function prepare(range: Range): Promise<Pick<IndexStep, 'taken' | 'more'>> {
    if (stopped) return nothing;
    if (thread === undefined) return here.prepare(range);
    isPreparing = true;
    try {
      return await thread.call('prepare', range);
    } catch (error) {
      if (stopped) return nothing;
      throw error;
    } finally {
      isPreparing = false;
    }
  }

  /** One step, over the whole queue or a range of it; steps run one at a time. */
  function step(range: Range = {}): Promise<IndexStep> {
    return queue.run(async () => {
      // Checked here, so that a service with nothing to index starts no thread. A range is not empty.
      if (range.upTo === undefined && (await firstQueued.first({})) === undefined) return nothing;
      const prepared = await prepare(range);
      if (prepared.taken === 0) return nothing;
      // SQLite has one writer: the thread writes while this thread does not, so that neither waits for the other's lock.
      const written = await (thread === undefined ? here.write() : database.betweenTransactions(() => thread.call('write', {})));
      return { ...prepared, ...written };
    });
  }

  async function catchUp(tenant: number): Promise<void> {
    const upTo = await lastQueued.first({ tenant });
    if (upTo === undefined) return;
    // Moves forward through the queue, so that it ends even when packets are queued or changed meanwhile: each packet is
    // indexed in the version it had at the call, or in a later one.
    let after: QueuePosition = { tenant, packet: 0 };
    for (;;) {
      const { taken, reached }: IndexStep = await step({ after, upTo });
      if (taken === 0 || reached?.packet === upTo.packet) return;
      after = reached ?? after;
    }
  }

  // The steps of all tenants run one at a time, and many concurrent searches must not queue a step each.
  const caughtUp = sharing(catchUp);

  /** One step over the whole queue, or on a cluster over that of each tenant. */
  async function round(): Promise<Omit<IndexStep, 'reached'>> {
    const steps: IndexStep[] = [];
    const { more, failure } = await due.each('index', {
      scan: () => tenantsOf(database.reads.selectFrom('search_queue').select('tenant')),
      async work(tenant) {
        const range = tenant === undefined ? {} : { after: { tenant, packet: 0 }, upTo: { tenant, packet: Number.MAX_SAFE_INTEGER } };
        const done = await step(range);
        steps.push(done);
        return done.more;
      },
    });
    if (failure !== undefined) throw failure;
    const taken = steps.reduce((sum, one) => sum + one.taken, 0);
    return { taken, more, refused: steps.flatMap(({ refused }) => refused) };
  }

  return {
    round,
    /** Indexes everything queued for the tenant at the time of the call. */
    all: async (tenant: number): Promise<void> => caughtUp(tenant),
    /**
     * Takes no further packets from the queue, which keeps them for the next start. A stop of the service need not wait for the
     * thread to start, or to read packets; what it writes, it completes.
     */
    stop: (): void => {
      stopped = true;
      if (isPreparing) thread?.interrupt(new Error('Indexing has stopped.'));
    },
    idle: () => queue.idle(),
  };
}
