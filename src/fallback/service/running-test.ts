import type { Clock } from '../../kit/clock.ts';
import type { Place } from '../../kit/fair-queue.ts';
import type { TestProgress } from '../model/test.ts';
import type { Store } from '../store/store.ts';
import { joined, type TestRecord } from './record.ts';
import { type Run, runTest } from './runs.ts';

/** Finished prompts are stored together: after this many, or after this time in milliseconds. */
const storeTogether = 100;
const storeWithinMs = 500;

/** The tolerance for real calls, in milliseconds per attempt beyond a prompt's time bound, since timers and networks are not exact. */
const realSlackMs = 250;

export type ProgressListener = (progress: TestProgress) => void;

interface RunningTestDependencies {
  store: Store;
  clock: Clock;
  /** A monotonic clock, in milliseconds. */
  now: () => number;
  /** How many results of the chain are kept; 0: all. */
  keep: number;
  /** Called with each internal error of a run. */
  onError: (error: unknown) => void;
}

/** A test that runs on this instance. */
export class RunningTest {
  readonly id: string;
  readonly record: TestRecord;
  /** The final result as JSON; set when the test is started. Rejects when the store fails. */
  ended!: Promise<string>;
  /** Called after each prompt and at the end. */
  readonly listeners = new Set<ProgressListener>();
  readonly #parts: RunningTestDependencies;
  readonly #waits = new AbortController();
  readonly #calls = new AbortController();
  #storedAt: number;
  #storing: Promise<void> = Promise.resolve();

  constructor(record: TestRecord, parts: RunningTestDependencies) {
    this.id = record.head.id;
    this.record = record;
    this.#parts = parts;
    this.#storedAt = parts.now();
  }

  /** Aborts when the test makes no further call. */
  get signal(): AbortSignal {
    return this.#waits.signal;
  }

  /** Makes no further call, and lets the calls in progress finish. */
  drain(why: string): void {
    this.#waits.abort(why);
  }

  cancel(why: string): void {
    this.drain(why);
    this.#calls.abort(why);
  }

  /** Runs the test in its turn and stores the result. Returns the result as JSON; undefined if another instance had ended the test. */
  async run(run: Omit<Run, 'onDone' | 'signal' | 'callSignal'>, { turn, leave }: Place): Promise<string | undefined> {
    const { record, signal } = this;
    const { store, clock, now, keep, onError } = this.#parts;
    let startedAt = now();
    try {
      await turn;
      startedAt = now();
      await runTest({
        ...run,
        signal,
        callSignal: this.#calls.signal,
        onDone: (done) => {
          record.add(done);
          this.publish();
          return this.#storeIfDue();
        },
      });
      record.complete(run.engine, run.transport.mode === 'simulate' ? 0 : realSlackMs);
    } catch (error) {
      if (signal.aborted) record.stop('cancelled', String(signal.reason));
      else {
        onError(error);
        record.stop('failed', 'The run failed because of an internal error; the log of the service has the cause.');
      }
    } finally {
      leave();
    }
    record.close(clock(), now() - startedAt);
    await this.#storing.catch(() => undefined);
    const texts = record.texts();
    const { id, chain_id: chainId, status } = record.head;
    return (await store.results.end({ id, chainId, status, ...texts, keep })) ? joined(texts) : undefined;
  }

  /** Stores the finished prompts that are not stored yet, in batches, so that a crash loses few. */
  store(): Promise<void> {
    const { store, now } = this.#parts;
    this.#storedAt = now();
    const prompts = this.record.takeUnstored();
    if (prompts.length === 0) return this.#storing;
    const text = this.record.headText();
    this.#storing = this.#storing.then(() => store.results.addPrompts(this.id, prompts, text));
    return this.#storing;
  }

  #storeIfDue(): Promise<void> | undefined {
    const isDue = this.record.unstored >= storeTogether || this.#parts.now() - this.#storedAt >= storeWithinMs;
    return isDue ? this.store() : undefined;
  }

  publish(): void {
    for (const listener of this.listeners) listener(this.record.progress());
  }
}
