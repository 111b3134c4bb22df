import type { Awaitable } from '../../kit/awaitable.ts';

/** A run in progress, and the run that follows it, if somebody waits for that. */
interface Run<T> {
  readonly settled: Promise<unknown>;
  next: Promise<T> | undefined;
}

/**
 * Returns a function that runs the work of a key once for all callers that ask before it begins. Those that ask while it runs share
 * the next run, so that nobody gets a result older than its own call. A result that is there at once is not shared.
 */
export function sharing<Key, T>(work: (key: Key) => Awaitable<T>): (key: Key) => Awaitable<T> {
  const running = new Map<Key, Run<T>>();

  function begin(key: Key): Awaitable<T> {
    running.delete(key);
    const result = work(key);
    if (!(result instanceof Promise)) return result;
    const end = () => {
      if (run.next === undefined) running.delete(key);
    };
    const run: Run<T> = { settled: result.then(end, end), next: undefined };
    running.set(key, run);
    return result;
  }

  return (key) => {
    const run = running.get(key);
    if (run === undefined) return begin(key);
    run.next ??= run.settled.then(() => begin(key));
    return run.next;
  };
}
