import type { Clock } from '../../kit/clock.ts';
import { conflict, invalid, notFound, ServiceError, tooManyPending } from '../../kit/errors.ts';
import { isId, type NewId } from '../../kit/id.ts';
import { MemoryBudget } from '../../kit/memory-budget.ts';
import type { Chain } from '../model/chain.ts';
import type { LastTest } from '../model/summary.ts';
import { maxCalls, maxSeed, type TestPlan, type TestProgress, type TestRequest, type TestResult } from '../model/test.ts';
import { definitionOf } from '../rules/chain.ts';
import { createEngine, type Engine } from '../rules/engine.ts';
import { planOf, presetOf, promptCountOf } from '../rules/plan.ts';
import { worstCase } from '../rules/reach.ts';
import type { StoredResult } from '../store/results.ts';
import type { Store } from '../store/store.ts';
import { cancelled, createLeases, type Retention } from './leases.ts';
import { type LiveParts, transportFor } from './live.ts';
import { headOf, progressOf, storedText, TestRecord, withoutPrompts } from './record.ts';
import { createRunQueue, type Place, type Run, runTest } from './runs.ts';

/** The most concurrent tests, and the most waiting tests. */
const runsAtOnce = 4;
const mostWaiting = 1000;

/** The most bytes of the chains and prompts of tests that run or wait; one caller may hold a quarter. */
const maxHeldBytes = 64 * 1024 * 1024;

/** How long calls in progress may take when the service stops, in milliseconds. */
const lastCallsMs = 5_000;

/** Finished prompts are stored together: after this many, or after this time in milliseconds. */
const storeTogether = 100;
const storeWithinMs = 500;

/** The prompt of a test whose request names none. */
const defaultPrompt = 'Reply with the single word: ready';

/** The tolerance for real calls, in milliseconds per attempt beyond a prompt's time bound, since timers and networks are not exact. */
const realSlackMs = 250;

export interface TestServiceParts {
  store: Store;
  clock: Clock;
  newId: NewId;
  /** A number from 0 to below 1. */
  random(): number;
  live: LiveParts;
  retention: Retention;
  /** Called with each internal error of a run. */
  onError(error: unknown): void;
}

/** A test that was started. */
export interface Started {
  readonly id: string;
  /** The current result as JSON. */
  text(): string;
  /** The final result as JSON. @throws when the store fails */
  readonly ended: Promise<string>;
}

/** A page of a chain's results, with or without their prompts. */
interface ResultsPage {
  readonly limit: number;
  readonly offset: number;
  readonly prompts: boolean;
}

/** A running test of this instance. */
interface RunningTest extends Started {
  readonly record: TestRecord;
  readonly cancel: (why: string) => void;
  /** Makes no further call, and lets the calls in progress finish. */
  readonly drain: (why: string) => void;
  /** Stores the finished prompts that are not stored yet. */
  readonly store: () => Promise<void>;
  readonly listeners: Set<(progress: TestProgress) => void>;
}

export type TestService = ReturnType<typeof createTestService>;

/** Creates the operations on tests of chains. */
export function createTestService({ store, clock, newId, random, live: parts, retention, onError }: TestServiceParts) {
  const queue = createRunQueue(runsAtOnce, mostWaiting);
  const memory = new MemoryBudget(maxHeldBytes);
  const runningTests = new Map<string, RunningTest>();
  const leases = createLeases({ store, clock, retention, runningTests });
  let stopping = false;

  /** Validates a request and prepares its run, before anything is stored. */
  function prepare(chain: Chain, request: TestRequest) {
    const mode = request.mode ?? 'simulate';
    const snapshot = definitionOf(chain);
    const engine = createEngine(snapshot);
    const plan = planOf(engine, request);
    const prompt_count = promptCountOf(request);
    const max_calls_per_prompt = requireFewCalls(engine, prompt_count);
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
      prompt_count,
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
    return { record, run, max_calls_per_prompt };
  }

  /** Runs a test in its turn, stores the result, and returns it as JSON. */
  async function execute(
    { record, listeners }: Pick<RunningTest, 'record' | 'listeners'>,
    writer: PromptWriter,
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
          return writer.due();
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
    await writer.settled();
    const text = record.text();
    const { id, chain_id: chainId, status } = record.head;
    const wasStored = await store.results.end({ id, chainId, status, text, keep: retention.perChain });
    // If another instance has ended the test because this one seemed dead, callers have seen the stored result, so it is final.
    return wasStored ? text : ((await stored(id)) ?? text);
  }

  async function chainToTest(id: string): Promise<{ chain: Chain; bytes: number }> {
    const found = isId(id) ? await store.chains.find(id) : undefined;
    if (found === undefined) throw notFound('chain');
    return { chain: JSON.parse(found.text) as Chain, bytes: found.text.length };
  }

  async function start(chainId: string, request: TestRequest, owner = ''): Promise<Started> {
    if (stopping) throw new ServiceError('SERVICE_UNAVAILABLE', 'The service is stopping and starts no more tests.');
    const { chain, bytes } = await chainToTest(chainId);
    const { record, run } = prepare(chain, request);
    const { id, chain_id } = record.head;
    const held = bytes + run.prompts.reduce((sum, prompt) => sum + prompt.length, 0);
    const [controller, calls] = [new AbortController(), new AbortController()];
    const turn = queue.enter(owner, controller.signal);
    if (!memory.acquire(owner, held)) {
      turn.leave();
      throw tooManyPending('large tests');
    }
    const place = {
      turn: turn.turn,
      leave() {
        turn.leave();
        memory.release(owner, held);
      },
    };
    await store.results.begin({ id, chainId: chain_id, text: record.text(), leaseUntil: leases.until() }).catch((error: unknown) => {
      place.leave();
      throw error;
    });
    const listeners: RunningTest['listeners'] = new Set();
    const writer = createPromptWriter(store, record, parts.now);
    const ended = execute({ record, listeners }, writer, place, { ...run, signal: controller.signal, callSignal: calls.signal }).finally(
      () => {
        runningTests.delete(id);
        for (const listener of listeners) listener(record.progress());
      },
    );
    // A caller that does not wait for the result never sees this error, so it is logged.
    ended.catch(onError);
    const drain = (why: string) => controller.abort(why);
    const cancel = (why: string) => {
      drain(why);
      calls.abort(why);
    };
    const live: RunningTest = { id, record, listeners, ended, cancel, drain, store: writer.store, text: () => record.text() };
    runningTests.set(id, live);
    if (stopping) live.drain(cancelled.byStop);
    return live;
  }

  /** A stored result as JSON. */
  async function stored(id: string): Promise<string | undefined> {
    const found = await store.results.find(id);
    return found && storedText(found);
  }

  /** The current JSON of a result: from memory if its test runs on this instance, otherwise as stored. */
  const textOf = (row: StoredResult): string => runningTests.get(row.id)?.text() ?? storedText(row);

  /** The current JSON of a result; undefined if there is none. */
  async function find(id: string): Promise<string | undefined> {
    return isId(id) ? (runningTests.get(id)?.text() ?? stored(id)) : undefined;
  }

  /** Requests that another instance cancels its test; returns the result when the test has ended. @throws ServiceError 409 if it had already ended */
  async function cancelElsewhere(id: string): Promise<string> {
    if (!(await store.results.requestCancel(id))) throw conflict('This test has already ended; its result does not change.');
    while ((await store.results.head(id))?.status === 'running') await leases.nextRound();
    const text = await stored(id);
    if (text === undefined) throw notFound('test result');
    return text;
  }

  /** Reports the progress of another instance's test in every round, until the test ends or the listener leaves. */
  async function followElsewhere(id: string, tell: (progress: TestProgress) => void, hasLeft: () => boolean): Promise<void> {
    for (let isRunning = true; isRunning; ) {
      await leases.nextRound();
      if (hasLeft()) return;
      // If the store can't be read, the next round tries again.
      const found = await store.results.head(id).catch(() => undefined);
      if (found === undefined || hasLeft()) continue;
      tell(progressOf(JSON.parse(found.text) as TestResult));
      isRunning = found.status === 'running';
    }
  }

  return {
    start,
    /** What a test would do at most. Refuses what `start` would refuse, and starts nothing. */
    async plan(chainId: string, request: TestRequest): Promise<TestPlan> {
      const { record, max_calls_per_prompt } = prepare((await chainToTest(chainId)).chain, request);
      const { mode, preset, prompt_count } = record.head;
      return { mode, preset, prompt_count, max_calls: prompt_count * max_calls_per_prompt, max_calls_per_prompt };
    },
    find,
    /** Ends tests that were running when the process last ended; returns their number. */
    recover: leases.recover,
    /** Runs one round of the background work: renews leases, ends tests of dead instances, deletes old results. */
    runOnce: leases.runOnce,

    /**
     * A page of a chain's results as JSON, newest first, and their total number; undefined if no chain has this id. A page
     * with prompts ends early if its results exceed the size limit of the store.
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

    /** A summary of a chain's latest test; null if there is none. */
    async lastOf(chainId: string): Promise<LastTest | null> {
      const { rows } = await store.results.ofChain(chainId, { limit: 1, offset: 0 });
      const [row] = rows;
      if (row === undefined) return null;
      const { id, status, mode, verdict, prompt_count, success_rate, chain_version, started_at, completed_at } = headOf(textOf(row));
      return { id, status, mode, verdict, prompt_count, success_rate, chain_version, started_at, completed_at };
    },

    /** Cancels a running test; returns its result when it has ended. @throws ServiceError 404, or 409 if it had already ended */
    async cancel(id: string): Promise<string> {
      const live = runningTests.get(id);
      if (live !== undefined) {
        live.cancel(cancelled.byCaller);
        return live.ended;
      }
      if ((await find(id)) === undefined) throw notFound('test result');
      return cancelElsewhere(id);
    },

    /**
     * Returns the progress of a test, and calls `listener` with each later change until the test ends. `text` is the result
     * from `find`. If another instance runs the test, the progress is read from the store in every round.
     */
    follow(id: string, text: string, listener: (progress: TestProgress) => void): { now: TestProgress; leave: () => void } {
      const live = runningTests.get(id);
      if (live !== undefined) {
        live.listeners.add(listener);
        return { now: live.record.progress(), leave: () => void live.listeners.delete(listener) };
      }
      const now = progressOf(JSON.parse(text) as TestResult);
      let hasLeft = now.status !== 'running';
      // It only fails when the service stops, which ends the listener's stream as well.
      if (!hasLeft) followElsewhere(id, listener, () => hasLeft).catch(() => undefined);
      return {
        now,
        leave() {
          hasLeft = true;
        },
      };
    },

    /** The numbers of running and waiting tests. */
    counts: () => ({ running: queue.running(), waiting: queue.waiting() }),

    /** Ends all tests, whose calls in progress get five seconds, stores their finished prompts, and refuses new tests. */
    async stop(): Promise<void> {
      stopping = true;
      leases.stop();
      const all = [...runningTests.values()];
      for (const live of all) live.drain(cancelled.byStop);
      const timeout = setTimeout(() => {
        for (const live of all) live.cancel(cancelled.byStop);
      }, lastCallsMs);
      await Promise.allSettled(all.map(({ ended }) => ended));
      clearTimeout(timeout);
    },
  };
}

/** The most calls for one prompt. @throws ServiceError 400 if all prompts could make too many */
function requireFewCalls(engine: Engine, prompts: number): number {
  const { attempts } = worstCase(engine);
  if (attempts * prompts <= maxCalls) return attempts;
  throw invalid(
    'prompt_count',
    `prompt_count ${prompts} allows up to ${attempts * prompts} calls, ${attempts} for each prompt, and a test may make at most ${maxCalls}; with this chain prompt_count can be at most ${Math.floor(maxCalls / attempts)}.`,
  );
}

type PromptWriter = ReturnType<typeof createPromptWriter>;

/** Creates a writer that stores finished prompts in batches, so that a crash loses few and the store is not called for each. */
function createPromptWriter({ results }: Store, record: TestRecord, now: () => number) {
  let storedAt = now();
  let storing: Promise<void> = Promise.resolve();
  function store(): Promise<void> {
    storedAt = now();
    const prompts = record.takeUnstored();
    if (prompts.length === 0) return storing;
    const text = record.headText();
    storing = storing.then(() => results.addPrompts(record.head.id, prompts, text));
    return storing;
  }
  return {
    store,
    /** Stores the waiting prompts if a batch is due; undefined if none is. */
    due: (): Promise<void> | undefined => (record.unstored < storeTogether && now() - storedAt < storeWithinMs ? undefined : store()),
    /** Waits for the pending writes. */
    settled: () => storing.catch(() => undefined),
  };
}
