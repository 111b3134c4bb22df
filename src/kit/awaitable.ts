/** A value, or the promise of one where it is not at hand: SQLite answers on the spot, and what is asked often need not wait. */
export type Awaitable<T> = T | Promise<T>;
