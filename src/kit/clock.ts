/** Gives the current moment. Handed in everywhere, so that a test turns it instead of waiting. */
export type Clock = () => Date;

/** The machine's clock. */
export const systemClock: Clock = () => new Date();
