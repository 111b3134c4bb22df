import type { Clock } from '../../kit/clock.ts';
import { conflict, notFound, ServiceError } from '../../kit/errors.ts';
import { isId, type NewId } from '../../kit/id.ts';
import type { Chain, ChainDefinition } from '../model/chain.ts';
import type { LastTest } from '../model/summary.ts';
import { defaultPrompts, maxSeed, type TestProgress, type TestRequest, type TestResult } from '../model/test.ts';
import { createEngine } from '../rules/engine.ts';
import { planOf, presetOf } from '../rules/plan.ts';
import type { Store } from '../store/store.ts';
import { type LiveParts, transportFor } from './live.ts';
import { endedText, TestRecord } from './record.ts';
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

interface Live extends Started {
  readonly record: TestRecord;
  readonly cancel: (why: string) => void;
  readonly listeners: Set<(progress: TestProgress) => void>;
}

export type TestService = ReturnType<typeof createTestService>;

/** Tests of chains: what a caller may do with them. */
export function createTestService({ store, clock, newId, random, live: parts, onError }: TestServiceParts) {
  const queue = createRunQueue(runsAtOnce, mostWaiting);
  const inHand = new Map<string, Live>();
  let stopping = false;

  /** Everything about a run that a fault of the request can refuse, before anything is kept. */
  function prepare(chain: Chain, request: TestRequest) {
    const mode = request.mode ?? 'simulate';
    const snapshot = snapshotOf(chain);
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
    place: Place,
    run: Omit<Run, 'onDone'>,
  ): Promise<string> {
    const keeper = createKeeper(store, record, parts.now);
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
        record.stop('failed', 'The run itself broke; the log has the cause.');
      }
    } finally {
      place.leave();
    }
    record.close(clock(), parts.now() - startedAt);
    await keeper.settled();
    const text = record.text();
    await store.results.end({ id: record.head.id, chainId: record.head.chain_id, status: record.head.status, text });
    return text;
  }

  async function start(chainId: string, request: TestRequest): Promise<Started> {
    if (stopping) throw new ServiceError('SERVICE_UNAVAILABLE', 'The service is stopping; no test is begun.');
    const found = isId(chainId) ? await store.chains.find(chainId) : undefined;
    if (found === undefined) throw notFound('chain');
    const { record, run } = prepare(JSON.parse(found.text) as Chain, request);
    const { id, chain_id } = record.head;
    const controller = new AbortController();
    const place = queue.enter(controller.signal);
    await store.results.begin({ id, chainId: chain_id, text: record.text() }).catch((error: unknown) => {
      place.leave();
      throw error;
    });
    const listeners: Live['listeners'] = new Set();
    const ended = carryOut({ record, listeners }, place, { ...run, signal: controller.signal }).finally(() => {
      inHand.delete(id);
      for (const listener of listeners) listener(record.progress());
    });
    // Whoever asked not to wait does not hear of a store out of reach; the log does.
    ended.catch(onError);
    const live: Live = { id, record, listeners, ended, cancel: (why) => controller.abort(why), text: () => record.text() };
    inHand.set(id, live);
    if (stopping) live.cancel(stopSentence);
    return live;
  }

  /** A result in JSON by its id; undefined where there is none. */
  async function find(id: string): Promise<string | undefined> {
    if (!isId(id)) return undefined;
    const live = inHand.get(id);
    if (live !== undefined) return live.text();
    const kept = await store.results.find(id);
    return kept && endedText(kept);
  }

  return {
    start,
    find,

    /** A page of a chain's results in JSON, newest first, and how many there are; undefined for what is no chain's id. */
    async ofChain(chainId: string, page: { limit: number; offset: number }): Promise<{ texts: string[]; total: number } | undefined> {
      if (!isId(chainId)) return undefined;
      const { rows, total } = await store.results.ofChain(chainId, page);
      if (total === 0 && (await store.chains.find(chainId)) === undefined) return undefined;
      return { texts: rows.map((row) => inHand.get(row.id)?.text() ?? endedText(row)), total };
    },

    /** The latest test of a chain in short. */
    async lastOf(chainId: string): Promise<LastTest | null> {
      const { rows } = await store.results.ofChain(chainId, { limit: 1, offset: 0 });
      const [row] = rows;
      if (row === undefined) return null;
      const result = JSON.parse(inHand.get(row.id)?.text() ?? endedText(row)) as TestResult;
      const { id, status, mode, verdict, prompt_count, success_rate, chain_version, started_at, completed_at } = result;
      return { id, status, mode, verdict, prompt_count, success_rate, chain_version, started_at, completed_at };
    },

    /** Cancels a running test; gives its result once it has stopped. 409 for one that has ended. */
    async cancel(id: string): Promise<string> {
      const live = inHand.get(id);
      if (live === undefined) {
        if ((await find(id)) === undefined) throw notFound('test result');
        throw conflict('This test has ended; its result is kept.');
      }
      live.cancel('It was cancelled by a caller.');
      return live.ended;
    },

    /** Calls `listener` with how far a running test is, each time it changes; undefined where none of that id runs here. */
    follow(id: string, listener: (progress: TestProgress) => void): { now: TestProgress; leave: () => void } | undefined {
      const live = inHand.get(id);
      if (live === undefined) return undefined;
      live.listeners.add(listener);
      return { now: live.record.progress(), leave: () => void live.listeners.delete(listener) };
    },

    /** Ends results that were running when the program last ended: `cancelled`, with the prompts that were done. */
    async recover(): Promise<number> {
      const left = await store.results.running();
      for (const kept of left) {
        const result = JSON.parse(endedText(kept)) as TestResult;
        const text = JSON.stringify({
          ...result,
          status: 'cancelled',
          error: 'The service stopped while it ran.',
          completed_at: clock().toISOString(),
        });
        await store.results.end({ id: kept.id, chainId: kept.chainId, status: 'cancelled', text });
      }
      return left.length;
    },

    /** How many tests run and wait. */
    counts: () => ({ running: queue.running(), waiting: queue.waiting() }),

    /** Cancels what runs, keeps what was done, and takes no more. */
    async stop(): Promise<void> {
      stopping = true;
      const all = [...inHand.values()];
      for (const live of all) live.cancel(stopSentence);
      await Promise.allSettled(all.map(({ ended }) => ended));
    },
  };
}

const stopSentence = 'The service stopped while it ran.';

/** What a chain is made of: what a result keeps. */
function snapshotOf({ name, description, providers, fallback_rules, metadata }: Chain): ChainDefinition {
  return { name, description, providers, fallback_rules, metadata };
}

/** Keeps prompts as they are done, many together, so that a crash loses few and the store is not asked for each. */
function createKeeper({ results }: Store, record: TestRecord, now: () => number) {
  let keptAt = now();
  let keeping: Promise<void> = Promise.resolve();
  return {
    /** Keeps what is due; a promise only where there is something to wait for. */
    due(): Promise<void> | undefined {
      const waiting = record.unkept;
      if (waiting < keepTogether && now() - keptAt < keepWithinMs) return undefined;
      keptAt = now();
      const prompts = record.takeUnkept();
      const text = record.headText();
      keeping = keeping.then(() => results.addPrompts(record.head.id, prompts, text));
      return keeping;
    },
    /** Waits for what is being kept. */
    settled: () => keeping.catch(() => undefined),
  };
}
