/** A value or a promise of it. SQLite and caches answer synchronously, and frequent calls then skip the cost of a promise. */
export type Awaitable<T> = T | Promise<T>;

/** What `next` returns for a value: at once if the value is there. */
export function andThen<T, R>(value: Awaitable<T>, next: (value: T) => Awaitable<R>): Awaitable<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** Resolves in the next turn of the event loop, after other pending callbacks have run. */
export const nextTurn = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

/** Throws an error that no code expects outside of all promises, so that it ends the process or the thread. */
export function rethrow(error: unknown): void {
  setImmediate(() => {
    throw error;
  });
}

/** Resolves after `ms` milliseconds; with a signal, also when that aborts. */
export const pauseFor = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      // A signal may outlive many pauses.
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end);
    if (signal?.aborted) end();
  });

/** Works on all items at once. One that fails stops no other; its error is thrown after all of them. */
export const eachAtOnce = async <Item, Result>(items: readonly Item[], work: (item: Item) => Promise<Result>): Promise<Result[]> =>
  resultsOf(await Promise.allSettled(items.map(work)));

/** Works on items one after another. One that fails stops no other; its error is thrown after all of them. */
export async function eachInTurn<Item, Result>(items: readonly Item[], work: (item: Item) => Promise<Result>): Promise<Result[]> {
  const ends: PromiseSettledResult<Result>[] = [];
  for (const item of items) ends.push(...(await Promise.allSettled([work(item)])));
  return resultsOf(ends);
}

function resultsOf<Result>(ends: readonly PromiseSettledResult<Result>[]): Result[] {
  return ends.map((end) => {
    if (end.status === 'rejected') throw end.reason;
    return end.value;
  });
}

/** Resolves when the work has ended, whatever became of it, or after `ms` milliseconds. */
export async function settledWithin(ms: number, work: Promise<unknown>): Promise<void> {
  const ended = new AbortController();
  const settled = work.then(
    () => undefined,
    () => undefined,
  );
  await Promise.race([settled, pauseFor(ms, ended.signal)]);
  ended.abort();
}
