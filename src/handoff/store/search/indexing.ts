import { type Database, type Query, SerialQueue } from '../../../kit/sql/dialect.ts';
import type { Thread } from '../../../kit/thread.ts';
import { sharing } from '../sharing.ts';
import type { Tables } from '../tables.ts';
import { Indexer, type QueuePosition, type Range, type Written } from './indexer.ts';
import type { SearchTasks } from './thread.ts';

/** What one step of indexing did. */
export interface IndexStep extends Written {
  /** How many queued packets it took. */
  readonly taken: number;
  /** Whether it left some for another step. */
  readonly more: boolean;
}

const nothing = { taken: 0, more: false, refused: [], reached: undefined };

/** Updates the search index asynchronously, on the search thread where there is one. */
export class Indexing {
  readonly #database: Database<Tables>;
  readonly #thread: Thread<SearchTasks> | undefined;
  readonly #here: Indexer;
  readonly #lastQueued: Query<{ tenant: number }, QueuePosition>;
  readonly #firstQueued: Query<Record<string, never>, { packet: number }>;
  readonly #queue = new SerialQueue();
  /** The steps of all tenants run one at a time, and many concurrent searches must not queue a step each. */
  readonly #caughtUp = sharing((tenant: number) => this.#catchUp(tenant));
  #isStopped = false;
  #isPreparing = false;

  constructor(database: Database<Tables>, thread: Thread<SearchTasks> | undefined) {
    this.#database = database;
    this.#thread = thread;
    this.#here = new Indexer(database);
    this.#lastQueued = database.query((db, { tenant }) =>
      db.selectFrom('search_queue').select(['tenant', 'packet']).where('tenant', '=', tenant).orderBy('packet', 'desc').limit(1),
    );
    this.#firstQueued = database.query((db) => db.selectFrom('search_queue').select('packet').limit(1));
  }

  /** One step over the whole queue. */
  round(): Promise<IndexStep> {
    return this.#step({});
  }

  /** Indexes everything queued for the tenant at the time of the call. */
  async all(tenant: number): Promise<void> {
    await this.#caughtUp(tenant);
  }

  /**
   * Takes no further packets from the queue, which keeps them for the next start. A stop of the service need not wait for the
   * thread to start, or to read packets; what it writes, it completes.
   */
  stop(): void {
    this.#isStopped = true;
    if (this.#isPreparing) this.#thread?.interrupt(new Error('Indexing has stopped.'));
  }

  /** Resolves when the steps that have started are done. */
  idle(): Promise<void> {
    return this.#queue.idle();
  }

  async #catchUp(tenant: number): Promise<void> {
    const upTo = await this.#lastQueued.first({ tenant });
    if (upTo === undefined) return;
    // Moves forward through the queue, so that it ends even when packets are queued or changed meanwhile: each packet is
    // indexed in the version it had at the call, or in a later one.
    let after: QueuePosition = { tenant, packet: 0 };
    for (;;) {
      const { taken, reached }: IndexStep = await this.#step({ after, upTo });
      if (taken === 0 || reached?.packet === upTo.packet) return;
      after = reached ?? after;
    }
  }

  /** One step, over the whole queue or a range of it; steps run one at a time. */
  #step(range: Range): Promise<IndexStep> {
    return this.#queue.run(async () => {
      // Checked here, so that a service with nothing to index starts no thread. A range is not empty.
      if (range.upTo === undefined && (await this.#firstQueued.first({})) === undefined) return nothing;
      const prepared = await this.#prepare(range);
      if (prepared.taken === 0) return nothing;
      const thread = this.#thread;
      // SQLite has one writer: the thread writes while this thread does not, so that neither waits for the other's lock.
      const written = await (thread === undefined
        ? this.#here.write()
        : this.#database.betweenTransactions(() => thread.call('write', {})));
      return { ...prepared, ...written };
    });
  }

  async #prepare(range: Range): Promise<Pick<IndexStep, 'taken' | 'more'>> {
    if (this.#isStopped) return nothing;
    if (this.#thread === undefined) return this.#here.prepare(range);
    this.#isPreparing = true;
    try {
      return await this.#thread.call('prepare', range);
    } catch (error) {
      if (this.#isStopped) return nothing;
      throw error;
    } finally {
      this.#isPreparing = false;
    }
  }
}
