import type { Database } from '../../kit/sql/dialect.ts';
import { Turns } from '../../kit/sql/dialect.ts';
import type { Thread } from '../../kit/thread.ts';
import { createIndexer, type Place, type Stretch } from './search-index.ts';
import type { SearchTasks } from './search-thread.ts';
import type { Tables } from './tables.ts';

/**
 * How many queued packets one step takes. A larger step costs less a packet, and nobody else writes on SQLite while it
 * is written: some 5 ms.
 */
const stepSize = 400;

/** What one step of indexing did. */
export interface IndexStep {
  /** How many queued packets it looked at. */
  readonly taken: number;
  /** Whether it left some for another step. */
  readonly more: boolean;
  /** Packets that the database would not index; they are off the queue and can't be found. */
  readonly refused: readonly string[];
  /** Up to where the queue was worked off. */
  readonly reached: Place | undefined;
}

/** Writes the search index behind the packets, on the thread beside the service where there is one. */
export function createIndexing(database: Database<Tables>, thread: Thread<SearchTasks> | undefined) {
  const here = createIndexer(database);
  const lastQueued = database.query<{ tenant: number }, Place>((db, { tenant }) =>
    db.selectFrom('search_queue').select(['tenant', 'packet']).where('tenant', '=', tenant).orderBy('packet', 'desc').limit(1),
  );
  const firstQueued = database.query<Record<string, never>, { packet: number }>((db) =>
    db.selectFrom('search_queue').select('packet').limit(1),
  );
  const turns = new Turns();

  /** One step, over the whole queue or a stretch of it; steps come one after the other. */
  function step(stretch: Omit<Stretch, 'limit'> = {}): Promise<IndexStep> {
    const which = { ...stretch, limit: stepSize };
    return turns.take(async () => {
      // Looked at here, so that a service with nothing to index needs no thread.
      if ((await firstQueued.first({})) === undefined) return { taken: 0, more: false, refused: [], reached: undefined };
      const prepared = await (thread === undefined ? here.prepare(which) : thread.call('prepare', which));
      if (prepared.taken === 0) return { ...prepared, refused: [], reached: undefined };
      // SQLite has one writer: the thread writes in a turn of ours, so that neither ever waits inside the database.
      const written = await (thread === undefined ? here.write() : database.turn(() => thread.call('write', {})));
      return { ...prepared, ...written };
    });
  }

  async function catchUp(tenant: number): Promise<void> {
    const upTo = await lastQueued.first({ tenant });
    if (upTo === undefined) return;
    // Place by place, so that it comes to an end however much is queued or changed meanwhile: each packet goes in as it
    // was when this was asked, or later.
    let after: Place = { tenant, packet: 0 };
    for (;;) {
      const { taken, reached }: IndexStep = await step({ after, upTo });
      if (taken === 0 || reached?.packet === upTo.packet) return;
      after = reached ?? after;
    }
  }

  // Who asks while a tenant is caught up with shares one more: steps wait for one another, those of all tenants, and a
  // flood of searches must not be a flood of steps.
  const running = new Map<number, Promise<void>>();
  const next = new Map<number, Promise<void>>();

  function run(tenant: number): Promise<void> {
    const caughtUp = catchUp(tenant).finally(() => running.delete(tenant));
    running.set(tenant, caughtUp);
    return caughtUp;
  }

  return {
    step,
    /** Indexes what was queued for the tenant when it was called. */
    all(tenant: number): Promise<void> {
      const before = running.get(tenant);
      if (before === undefined) return run(tenant);
      const waiting =
        next.get(tenant) ??
        before
          .catch(() => undefined)
          .then(() => {
            next.delete(tenant);
            return run(tenant);
          });
      next.set(tenant, waiting);
      return waiting;
    },
    idle: () => turns.idle(),
  };
}
