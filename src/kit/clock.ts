/** Returns the current time. It is injected everywhere, so that tests advance it instead of waiting. */
export type Clock = () => Date;

/** The system clock. */
export const systemClock: Clock = () => new Date();

/** A random number from 0 up to but not including 1, for jitter. Not for secrets. */
export const systemJitter = (): number => Math.random();
