import { conflict, notFound, ServiceError, tooManyPending } from '../../kit/errors.ts';
import { FairQueue, type Place } from '../../kit/fair-queue.ts';
import { readJson } from '../../kit/json.ts';
import { MemoryBudget } from '../../kit/memory-budget.ts';
import type { ChainSummary } from '../model/summary.ts';
import type { TestPlan, TestProgress, TestRequest } from '../model/test.ts';
import type { Store } from '../store/store.ts';
import type { ChainService } from './chains.ts';
import { cancelled, Leases, type Retention } from './leases.ts';
import { type PrepareDependencies, prepare, type Rehearsing } from './prepare.ts';
import { progressOf, type ResultHead } from './record.ts';
import type { Rehearsals } from './rehearsal.ts';
import { createRemoteTests } from './remote-tests.ts';
import { createResults } from './results.ts';
import { type ProgressListener, RunningTest } from './running-test.ts';

/** One caller may have all concurrent tests but one, and a quarter of the waiting ones. */
const queueLimits = { concurrency: 4, perOwner: 3, maxWaiting: 1000, maxWaitingPerOwner: 250, maxWaitMs: Number.POSITIVE_INFINITY };

/** The most bytes of the chains and prompts of all tests; one caller may hold a quarter. */
const maxBytes = 64 * 1024 * 1024;

/** How long calls in progress may take when the service stops, in milliseconds. */
const lastCallsMs = 5_000;

export interface TestServiceDependencies extends PrepareDependencies {
  store: Store;
  chains: Pick<ChainService, 'get' | 'findings' | 'analysis'>;
  rehearsals: Rehearsals;
  retention: Retention;
  /** Called with each internal error of a run. */
  onError: (error: unknown) => void;
}

export type TestService = ReturnType<typeof createTestService>;

/**
 * Creates the operations on tests of chains. It is longer than a screen because the operations, which are short, share the
 * queue and the running tests of this instance.
 */
export function createTestService(parts: TestServiceDependencies) {
  const { store, chains, clock, live, retention, rehearsals, onError } = parts;
  const queue = new FairQueue({ ...queueLimits, what: 'tests' });
  const memory = new MemoryBudget(maxBytes);
  const runningTests = new Map<string, RunningTest>();
  const leases = new Leases({ store, clock, retention, runningTests });
  const remote = createRemoteTests(store, leases);
  const results = createResults(store, runningTests);
  let stopping = false;

  /** @throws ServiceError 409 if a rehearsal of the chain runs already */
  function beginRehearsal(chainId: string, { token, rehearsal }: Rehearsing): () => void {
    const end = rehearsals.start(chainId, token, rehearsal);
    if (end === undefined) throw conflict('A rehearsal of this chain runs already; wait until it ends.');
    return end;
  }

  async function start(chainId: string, request: TestRequest, owner = '', origin = ''): Promise<RunningTest> {
    if (stopping) throw new ServiceError('SERVICE_UNAVAILABLE', 'The service is stopping and starts no more tests.');
    const { record, run, rehearsing } = await prepare(await chains.get(chainId), await chains.findings(chainId), request, origin, parts);
    const { id, chain_id } = record.head;
    const endRehearsal = rehearsing === undefined ? () => undefined : beginRehearsal(chain_id, rehearsing);
    const test = new RunningTest(record, { store, clock, now: live.now, keep: retention.perChain, onError });
    const bytes = JSON.stringify(record.head.chain).length + run.prompts.reduce((sum, prompt) => sum + prompt.length, 0);
    let place: Place | undefined;
    let isHeld = false;
    const release = () => {
      place?.leave();
      if (isHeld) memory.release(owner, bytes);
      endRehearsal();
    };
    try {
      isHeld = memory.acquire(owner, bytes);
      if (!isHeld) throw tooManyPending('large tests');
      place = queue.enter(owner, test.signal);
      await store.results.begin({ id, chainId: chain_id, text: record.headText(), leaseUntil: leases.until() });
    } catch (error) {
      release();
      throw error;
    }
    test.ended = test
      .run(run, place)
      // If another instance has ended the test because this one seemed dead, callers have seen the stored result, so it is final.
      .then(async (final) => final ?? (await results.stored(id)) ?? record.text())
      .finally(() => {
        release();
        runningTests.delete(id);
        test.publish();
      });
    // A caller that does not wait for the result never sees this error, so it is logged.
    test.ended.catch(onError);
    runningTests.set(id, test);
    if (stopping) test.drain(cancelled.byStop);
    return test;
  }

  return {
    start,
    find: results.find,
    ofChain: results.ofChain,
    /** Ends tests that were running when the process last ended; returns their number. */
    recover: () => leases.recover(),
    /** Runs one round of the background work: renews leases, ends tests of dead instances, deletes old results. */
    runOnce: () => leases.runOnce(),
    /** The numbers of running and waiting tests. */
    counts: () => queue.counts,

    /** Describes a chain and its latest test. @throws ServiceError 404 for an unknown chain */
    async summary(chainId: string): Promise<ChainSummary> {
      const { summary } = await chains.analysis(chainId);
      return { ...(await summary()), last_test: await results.lastOf(chainId) };
    },

    /** What a test would do at most. Refuses what `start` would refuse, and starts nothing. */
    async plan(chainId: string, request: TestRequest, origin: string): Promise<TestPlan> {
      const { record, max_calls_per_prompt } = await prepare(await chains.get(chainId), [], request, origin, parts);
      const { mode, preset, prompt_count } = record.head;
      return { mode, preset, prompt_count, max_calls: prompt_count * max_calls_per_prompt, max_calls_per_prompt };
    },

    /** Cancels a running test; returns its result when it has ended. @throws ServiceError 404, or 409 if it had already ended */
    async cancel(id: string): Promise<string> {
      const test = runningTests.get(id);
      if (test !== undefined) {
        test.cancel(cancelled.byCaller);
        return test.ended;
      }
      if ((await results.find(id)) === undefined) throw notFound('test result');
      await remote.cancel(id);
      const text = await results.stored(id);
      if (text === undefined) throw notFound('test result');
      return text;
    },

    /**
     * Returns the progress of a test, and calls `listener` with each later change until the test ends. `text` is the result
     * from `find`.
     */
    follow(id: string, text: string, listener: ProgressListener): { now: TestProgress; leave: () => void } {
      const test = runningTests.get(id);
      if (test !== undefined) {
        test.listeners.add(listener);
        return {
          now: test.record.progress(),
          leave: () => {
            test.listeners.delete(listener);
          },
        };
      }
      const now = progressOf(readJson(text) as ResultHead);
      return { now, leave: now.status === 'running' ? remote.follow(id, listener) : () => undefined };
    },

    /** Ends all tests, whose calls in progress of providers get five seconds, stores their finished prompts, and refuses new tests. */
    async stop(): Promise<void> {
      stopping = true;
      leases.stop();
      const all = [...runningTests.values()];
      for (const test of all) {
        // A call of a gateway costs nothing, so it need not finish.
        if (test.record.head.mode === 'rehearsal') test.cancel(cancelled.byStop);
        else test.drain(cancelled.byStop);
      }
      const timeout = setTimeout(() => {
        for (const test of all) test.cancel(cancelled.byStop);
      }, lastCallsMs);
      await Promise.allSettled(all.map(({ ended }) => ended));
      clearTimeout(timeout);
    },
  };
}
