import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';

/** The result of a load. Times are in milliseconds. */
export interface LoadResult {
  requests: number;
  perSecond: number;
  p50: number;
  p99: number;
  /** Answers other than 2xx, and broken connections. */
  failed: number;
}

/** Collects the times of requests. */
export class Times {
  readonly #times: number[] = [];
  #first = 0;
  #last = 0;

  /** Adds a request that was just answered, with the time since it was sent. */
  add(milliseconds: number): void {
    this.#last = performance.now();
    if (this.#times.length === 0) this.#first = this.#last - milliseconds;
    this.#times.push(milliseconds);
  }

  result(failed: number): LoadResult {
    const { length } = this.#times;
    const perSecond = (length / (this.#last - this.#first)) * 1000;
    return { requests: length, perSecond, p50: quantile(this.#times, 0.5), p99: quantile(this.#times, 0.99), failed };
  }
}

/** The value that a part of the values is below, such as 0.99 of them; 0 for no values. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.floor(sorted.length * part)] ?? 0;
}

/** Begins work a number of times at even intervals, however long it takes. `due`: when it should have begun. */
export async function atEvenIntervals(count: number, perSecond: number, begin: (index: number, due: number) => void): Promise<void> {
  const first = performance.now();
  for (let index = 0; index < count; index += 1) {
    const due = first + (index * 1000) / perSecond;
    const early = due - performance.now();
    await (early > 0 ? sleep(early) : turn());
    begin(index, due);
  }
}

/** Runs work a number of times, with limited concurrency. */
export async function timesOf(count: number, atOnce: number, work: () => Promise<unknown>): Promise<LoadResult> {
  const times = new Times();
  let left = count;
  async function worker(): Promise<void> {
    while (left > 0) {
      left -= 1;
      const begun = performance.now();
      await work();
      times.add(performance.now() - begun);
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker));
  return times.result(0);
}
