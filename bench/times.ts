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
    const sorted = Float64Array.from(this.#times).sort();
    const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
    return { requests: sorted.length, perSecond: (sorted.length / (this.#last - this.#first)) * 1000, p50: at(0.5), p99: at(0.99), failed };
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
