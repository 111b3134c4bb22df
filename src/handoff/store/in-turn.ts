/** Runs a long read when it is its tenant's turn; it is not begun for a caller who has gone. */
export type InTurn = <T>(read: () => Promise<T>) => Promise<T>;
