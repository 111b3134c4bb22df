/** A window's decision about one more request. */
export interface WindowState {
  allowed: boolean;
  remaining: number;
  /** Milliseconds until a request is allowed again; 0 if one is allowed now. */
  retryAfterMs: number;
  /** Milliseconds until the oldest counted request leaves the window; 0 if the window is empty. */
  resetMs: number;
}

/** The most runs of requests that a window keeps; this limits its memory to about 64 KiB. */
const maxRuns = 4096;

/**
 * A sliding window: at most `limit` requests in any interval of `lengthMs`. If the limit is above 4,096, requests within
 * a 4,096th of the window are kept as one run, which leaves the window with its latest possible request. Memory stays
 * bounded and the limit is never exceeded.
 */
export class SlidingWindow {
  readonly #lengthMs: number;
  #runs: { until: number; count: number }[] = [];
  #first = 0;
  #total = 0;

  constructor(lengthMs: number) {
    this.#lengthMs = lengthMs;
  }

  /** Whether the window counts no request at `now` (milliseconds) and can be dropped. */
  isEmpty(now: number): boolean {
    this.#forget(now);
    return this.#total === 0;
  }

  /** The decision about a request at `now`, without counting it. */
  peek(now: number, limit: number): WindowState {
    this.#forget(now);
    const oldest = this.#runs[this.#first];
    const allowed = this.#total < limit;
    return {
      allowed,
      remaining: Math.max(0, limit - this.#total),
      resetMs: oldest === undefined ? 0 : oldest.until + this.#lengthMs - now,
      retryAfterMs: allowed ? 0 : this.#freeAfter(now, limit),
    };
  }

  /** Counts one request at `now`. */
  add(now: number, limit: number): void {
    const last = this.#runs.at(-1);
    if (last !== undefined && this.#runs.length > this.#first && now < last.until) {
      last.count += 1;
    } else {
      this.#runs.push({ until: now + (limit > maxRuns ? this.#lengthMs / maxRuns : 0), count: 1 });
    }
    this.#total += 1;
  }

  /** Uncounts the latest request, which was refused after all. */
  uncountLast(): void {
    const last = this.#runs.at(-1);
    if (last === undefined || this.#total === 0) return;
    last.count -= 1;
    this.#total -= 1;
    if (last.count === 0) this.#runs.pop();
  }

  #freeAfter(now: number, limit: number): number {
    let over = this.#total - limit + 1;
    for (let index = this.#first; index < this.#runs.length; index += 1) {
      const run = this.#runs[index]!;
      over -= run.count;
      if (over <= 0) return Math.max(1, run.until + this.#lengthMs - now);
    }
    return this.#lengthMs;
  }

  #forget(now: number): void {
    const edge = now - this.#lengthMs;
    // After the clock was set back, earlier requests count as made now, so that nobody waits longer than the window.
    const latest = now + this.#lengthMs / maxRuns;
    for (let index = this.#runs.length - 1; index >= this.#first && this.#runs[index]!.until > latest; index -= 1)
      this.#runs[index]!.until = now;
    while (this.#first < this.#runs.length && this.#runs[this.#first]!.until <= edge) {
      this.#total -= this.#runs[this.#first]!.count;
      this.#first += 1;
    }
    if (this.#first > 64 && this.#first * 2 > this.#runs.length) {
      this.#runs = this.#runs.slice(this.#first);
      this.#first = 0;
    }
  }
}

/** How many windows are kept before empty and old ones are dropped. */
const maxWindows = 20_000;

/** How many remain then: one scan of all windows serves a thousand new names. */
const keptWindows = 19_000;

/** A bounded set of windows by name. Empty windows are dropped first, then the oldest. */
export class Windows {
  readonly #lengthMs: number;
  readonly #windows = new Map<string, SlidingWindow>();

  constructor(lengthMs: number) {
    this.#lengthMs = lengthMs;
  }

  of(name: string, now: number): SlidingWindow {
    let window = this.#windows.get(name);
    if (window === undefined) {
      if (this.#windows.size >= maxWindows) this.#drop(now);
      window = new SlidingWindow(this.#lengthMs);
      this.#windows.set(name, window);
    }
    return window;
  }

  #drop(now: number): void {
    for (const [name, window] of this.#windows) if (window.isEmpty(now)) this.#windows.delete(name);
    for (const name of this.#windows.keys()) {
      if (this.#windows.size <= keptWindows) return;
      this.#windows.delete(name);
    }
  }
}
