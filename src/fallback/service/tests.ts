import type { Clock } from '../../kit/clock.ts';
import { conflict, notFound, ServiceError } from '../../kit/errors.ts';
import { isId, type NewId } from '../../kit/id.ts';
import type { Chain } from '../model/chain.ts';
import type { LastTest } from '../model/summary.ts';
import { defaultPrompts, maxSeed, type TestProgress, type TestRequest, type TestResult } from '../model/test.ts';
import { definitionOf } from '../rules/chain.ts';
import { createEngine } from '../rules/engine.ts';
import { planOf, presetOf } from '../rules/plan.ts';
import type { StoredResult } from '../store/results.ts';
import type { Store } from '../store/store.ts';
import { cancelled, createLeases, type Retention } from './leases.ts';
import { type LiveParts, transportFor } from './live.ts';
import { endedText, headOf, progressOf, TestRecord, withoutPrompts } from './record.ts';
import { createRunQueue, type Place, type Run, runTest } from './runs.ts';

/** How many tests run at once, and how many may wait. */
const runsAtOnce = 4;
const mostWaiting = 1000;

/** How many prompts are kept together, and how long one may wait for others to be kept with it. */
const keepTogether = 100;
const keepWithinMs = 500;

/** What is asked where the caller does not say. */
const defaultPrompt = 'Reply with the single word: ready';

/** How much longer than its bound a real prompt may take for each attempt: timers and networks are not exact. */
const realSlackMs = 250;

export interface TestServiceParts {
  store: Store;
  clock: Clock;
  newId: NewId;
  /** A number from 0 to below 1. */
  random(): number;
  live: LiveParts;
  retention: Retention;
  /** Told of a run that broke. */
  onError(error: unknown): void;
}

/** A test that was asked for. */
export interface Started {
  readonly id: string;
  /** The result as it is now, in JSON. */
  text(): string;
  /** The result in JSON when the test has ended. */
  readonly ended: Promise<string>;
}

/** Which of a chain's results are asked for, and whether with their prompts. */
interface ResultsPage {
  readonly limit: number;
  readonly offset: number;
  readonly prompts: boolean;
}

interface Live extends Started {
  readonly record: TestRecord;
  readonly cancel: (why: string) => void;
  readonly keep: () => Promise<void>;
  readonly listeners: Set<(progress: TestProgress) => void>;
}

export type TestService = ReturnType<typeof createTestService>;

/** Tests of chains: what a caller may do with them. */
export function createTestService({ store, clock, newId, random, live: parts, retention, onError }: TestServiceParts) {
  const queue = createRunQueue(runsAtOnce, mostWaiting);
  const inHand = new Map<string, Live>();
  const leases = createLeases({ store, clock, retention, inHand });
  let stopping = false;

  /** Everything about a run that a fault of the request can refuse, before anything is kept. */
  function prepare(chain: Chain, request: TestRequest) {
    const mode = request.mode ?? 'simulate';
    const snapshot = definitionOf(chain);
    const engine = createEngine(snapshot);
    const plan = planOf(engine, request);
    const transport = transportFor(mode, snapshot, request.stream ?? false, parts);
    const now = clock();
    const record = new TestRecord({
      id: newId(now),
      chain_id: chain.id,
      chain_version: chain.version,
      chain: snapshot,
      mode,
      preset: presetOf(request),
      seed: request.seed ?? Math.floor(random() * (maxSeed + 1)),
      prompt_count: request.prompt_count ?? defaultPrompts,
      deadline_ms: request.deadline_ms ?? null,
      started_at: now.toISOString(),
    });
    const run = {
      engine,
      plan,
      transport,
      count: record.head.prompt_count,
      prompts: request.prompts ?? [defaultPrompt],
      seed: record.head.seed,
      deadlineMs: record.head.deadline_ms,
    };
    return { record, run };
  }

  /** Runs what was begun, keeps what comes of it, and gives the result. */
  async function carryOut(
    { record, listeners }: Pick<Live, 'record' | 'listeners'>,
    keeper: Keeper,
    place: Place,
    run: Omit<Run, 'onDone'>,
  ): Promise<string> {
    let startedAt = parts.now();
    try {
      await place.turn;
      startedAt = parts.now();
      await runTest({
        ...run,
        onDone(done) {
          record.add(done);
          for (const listener of listeners) listener(record.progress());
          return keeper.due();
        },
      });
      record.complete(run.engine, run.transport.mode === 'simulate' ? 0 : realSlackMs);
    } catch (error) {
      if (run.signal.aborted) record.stop('cancelled', String(run.signal.reason));
      else {
        onError(error);
        record.stop('failed', 'The run failed because of an internal error; the log of the service has the cause.');
      }
    } finally {
      place.leave();
    }
    record.close(clock(), parts.now() - startedAt);
    await keeper.settled();
    const text = record.text();
    const { id, chain_id: chainId, status } = record.head;
    const isKept = await store.results.end({ id, chainId, status, text, keep: retention.perChain });
    // Another instance that took this one to be gone has ended it: what is kept is what was told since.
    return isKept ? text : ((await kept(id)) ?? text);
  }

  async function start(chainId: string, request: TestRequest, owner = ''): Promise<Started> {
    if (stopping) throw new ServiceError('SERVICE_UNAVAILABLE', 'The service is stopping and starts no more tests.');
    const found = isId(chainId) ? await store.chains.find(chainId) : undefined;
    if (found === undefined) throw notFound('chain');
    const { record, run } = prepare(JSON.parse(found.text) as Chain, request);
    const { id, chain_id } = record.head;
    const controller = new AbortController();
    const place = queue.enter(owner, controller.signal);
    await store.results.begin({ id, chainId: chain_id, text: record.text(), leaseUntil: leases.until() }).catch((error: unknown) => {
      place.leave();
      throw error;
    });
    const listeners: Live['listeners'] = new Set();
    const keeper = createKeeper(store, record, parts.now);
    const ended = carryOut({ record, listeners }, keeper, place, { ...run, signal: controller.signal }).finally(() => {
      inHand.delete(id);
      for (const listener of listeners) listener(record.progress());
    });
    // Whoever asked not to wait does not hear of a store out of reach; the log does.
    ended.catch(onError);
    const cancel = (why: string) => controller.abort(why);
    const live: Live = { id, record, listeners, ended, cancel, keep: keeper.keep, text: () => record.text() };
    inHand.set(id, live);
    if (stopping) live.cancel(cancelled.byStop);
    return live;
  }

  /** A result in JSON as it is kept. */
  async function kept(id: string): Promise<string | undefined> {
    const found = await store.results.find(id);
    return found && endedText(found);
  }

  /** What a result's text is now: of one that runs here as it stands, of any other as it is kept. */
  const textOf = (row: StoredResult): string => inHand.get(row.id)?.text() ?? endedText(row);

  /** A result in JSON by its id; undefined where there is none. */
  async function find(id: string): Promise<string | undefined> {
    return isId(id) ? (inHand.get(id)?.text() ?? kept(id)) : undefined;
  }

  /** Has the instance that runs a test cancel it; gives the result once it has stopped. */
  async function cancelElsewhere(id: string): Promise<string> {
    if (!(await store.results.requestCancel(id))) throw conflict('This test has already ended; its result stays as it is.');
    while ((await store.results.head(id))?.status === 'running') await leases.nextRound();
    const text = await kept(id);
    if (text === undefined) throw notFound('test result');
    return text;
  }

  /** Tells how far a test is that another instance runs, round after round until its end, or until nobody listens. */
  async function followElsewhere(id: string, tell: (progress: TestProgress) => void, isLeft: () => boolean): Promise<void> {
    for (let isRunning = true; isRunning; ) {
      await leases.nextRound();
      if (isLeft()) return;
      // A round in which the store can't be read says nothing.
      const found = await store.results.head(id).catch(() => undefined);
      if (found === undefined || isLeft()) continue;
      tell(progressOf(JSON.parse(found.text) as TestResult));
      isRunning = found.status === 'running';
    }
  }

  return {
    start,
    find,
    /** Ends results that were running when the program last ended; gives how many. */
    recover: leases.recover,
    /** A round of what is done unasked: leases, results of instances that are gone, and old results. */
    runOnce: leases.runOnce,

    /**
     * A page of a chain's results in JSON, newest first, and how many there are; undefined for what is no chain's id. With
     * their prompts, a page ends early where its results are too large together.
     */
    async ofChain(chainId: string, { limit, offset, prompts }: ResultsPage): Promise<{ texts: string[]; total: number } | undefined> {
      if (!isId(chainId)) return undefined;
      const texts: string[] = [];
      for (;;) {
        const { rows, total } = await store.results.ofChain(chainId, { limit: limit - texts.length, offset: offset + texts.length });
        if (total === 0 && (await store.chains.find(chainId)) === undefined) return undefined;
        texts.push(...rows.map((row) => (prompts ? textOf(row) : withoutPrompts(textOf(row)))));
        if (prompts || rows.length === 0 || texts.length === limit) return { texts, total };
      }
    },

    /** The latest test of a chain in short. */
    async lastOf(chainId: string): Promise<LastTest | null> {
      const { rows } = await store.results.ofChain(chainId, { limit: 1, offset: 0 });
      const [row] = rows;
      if (row === undefined) return null;
      const { id, status, mode, verdict, prompt_count, success_rate, chain_version, started_at, completed_at } = headOf(textOf(row));
      return { id, status, mode, verdict, prompt_count, success_rate, chain_version, started_at, completed_at };
    },

    /** Cancels a running test; gives its result once it has stopped. 409 for one that has ended. */
    async cancel(id: string): Promise<string> {
      const live = inHand.get(id);
      if (live !== undefined) {
        live.cancel(cancelled.byCaller);
        return live.ended;
      }
      if ((await find(id)) === undefined) throw notFound('test result');
      return cancelElsewhere(id);
    },

    /**
     * Calls `listener` with how far a test is, each time it changes, up to its end. `text`: the result as `find` gave it; of
     * one that another instance runs the store is asked from time to time.
     */
    follow(id: string, text: string, listener: (progress: TestProgress) => void): { now: TestProgress; leave: () => void } {
      const live = inHand.get(id);
      if (live !== undefined) {
        live.listeners.add(listener);
        return { now: live.record.progress(), leave: () => void live.listeners.delete(listener) };
      }
      const now = progressOf(JSON.parse(text) as TestResult);
      let isLeft = now.status !== 'running';
      // It ends with the service at the latest, and so do the streams that it feeds.
      if (!isLeft) followElsewhere(id, listener, () => isLeft).catch(() => undefined);
      return {
        now,
        leave() {
          isLeft = true;
        },
      };
    },

    /** How many tests run and wait. */
    counts: () => ({ running: queue.running(), waiting: queue.waiting() }),

    /** Cancels what runs, keeps what was done, and takes no more. */
    async stop(): Promise<void> {
      stopping = true;
      leases.stop();
      const all = [...inHand.values()];
      for (const live of all) live.cancel(cancelled.byStop);
      await Promise.allSettled(all.map(({ ended }) => ended));
    },
  };
}

type Keeper = ReturnType<typeof createKeeper>;

/** Keeps prompts as they are done, many together, so that a crash loses few and the store is not asked for each. */
function createKeeper({ results }: Store, record: TestRecord, now: () => number) {
  let keptAt = now();
  let keeping: Promise<void> = Promise.resolve();
  function keep(): Promise<void> {
    keptAt = now();
    const prompts = record.takeUnkept();
    if (prompts.length === 0) return keeping;
    const text = record.headText();
    keeping = keeping.then(() => results.addPrompts(record.head.id, prompts, text));
    return keeping;
  }
  return {
    keep,
    /** Keeps what is due; a promise only where there is something to wait for. */
    due: (): Promise<void> | undefined => (record.unkept < keepTogether && now() - keptAt < keepWithinMs ? undefined : keep()),
    /** Waits for what is being kept. */
    settled: () => keeping.catch(() => undefined),
  };
}
