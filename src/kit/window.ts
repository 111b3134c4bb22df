/** What a window says of one more request. */
export interface WindowState {
  allowed: boolean;
  remaining: number;
  /** Milliseconds until a place is free again (0 when one is). */
  retryAfterMs: number;
  /** Milliseconds until the oldest counted request leaves the window (0 when it is empty). */
  resetMs: number;
}

/** How many runs of requests a window tells apart; it bounds a window's memory at about 64 KiB. */
const maxRuns = 4096;

/**
 * A true sliding window: at most `limit` requests in any `lengthMs`. Where the limit is above 4,096, requests closer
 * together than a 4,096th of the window are kept as one run that leaves with its latest possible member: memory stays
 * bounded and the limit is still never exceeded.
 */
export class SlidingWindow {
  readonly #lengthMs: number;
  #runs: { until: number; count: number }[] = [];
  #first = 0;
  #total = 0;

  constructor(lengthMs: number) {
    this.#lengthMs = lengthMs;
  }

  /** Whether nothing is counted any more at `now` (milliseconds), so that the window may be forgotten. */
  isEmpty(now: number): boolean {
    this.#forget(now);
    return this.#total === 0;
  }

  /** What a request at `now` would be told; counts nothing. */
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

  /** Takes back the latest request counted: it was refused after all. */
  takeBack(): void {
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
    // Where the clock was set back, what was counted before counts as of now: it must not be waited for longer.
    const latest = now + this.#lengthMs / maxRuns;
    for (let index = this.#runs.length - 1; index >= this.#first && this.#runs[index]!.until > latest; index -= 1)
      this.#runs[index]!.until = latest;
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

/** How many windows of a kind are kept before the empty and the oldest are dropped. */
const maxWindows = 20_000;

/** How many are left then: looking through all of them is paid for by a thousand new names, not by each. */
const keptWindows = 19_000;

/** Windows by name, bounded: those that count nothing go first, then the oldest. */
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
