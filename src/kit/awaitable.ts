/** A value, or the promise of one where it is not at hand: SQLite answers on the spot, and what is asked often need not wait. */
export type Awaitable<T> = T | Promise<T>;

/** Resolves in the next turn of the event loop, when others had theirs. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/** Resolves after so many milliseconds. */
export const pauseFor = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));
