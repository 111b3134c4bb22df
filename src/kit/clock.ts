/** Gives the current moment. Handed in everywhere, so that a test turns it instead of waiting. */
export type Clock = () => Date;

/** The machine's clock. */
export const systemClock: Clock = () => new Date();

/** Chance without secrets, from 0 up to 1: spreads out what would happen all at once. */
export const systemRandom = (): number => Math.random();
