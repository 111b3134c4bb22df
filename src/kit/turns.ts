/** After a piece of work that took longer, in milliseconds, short requests get time of their own. */
const longMs = 2;

/** The part of the time of a long piece for which the event loop is then left to others. */
const restPart = 0.25;

/**
 * Shares the event loop between owners. Work on a large value, such as to read, parse or print a long text, first takes a
 * turn: one piece of such work runs in each turn of the event loop, of one owner after the other, so that a short request
 * waits for one piece at most. After a long piece the loop goes round without any, since Node accepts one connection in
 * each round.
 */
export class Turns {
  /** What starts the waiting pieces, by owner; the owner whose turn is next comes first. */
  readonly #waiting = new Map<unknown, (() => void)[]>();
  #isScheduled = false;

  /**
   * Resolves in a turn that no other piece of work has. It lasts until the caller waits for something else.
   * @param options.first before what the owner waits for otherwise: for a value that is in memory already
   */
  next(owner: unknown, { first = false } = {}): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const own = this.#waiting.get(owner) ?? [];
    this.#waiting.set(owner, own);
    if (first) own.unshift(resolve);
    else own.push(resolve);
    if (!this.#isScheduled) setImmediate(this.#startNext);
    this.#isScheduled = true;
    return promise;
  }

  readonly #startNext = (): void => {
    const [entry] = this.#waiting;
    this.#isScheduled = entry !== undefined;
    if (entry === undefined) return;
    const [owner, own] = entry;
    // An owner with more work goes to the end of the line.
    this.#waiting.delete(owner);
    const start = own.shift()!;
    if (own.length > 0) this.#waiting.set(owner, own);
    const begun = performance.now();
    start();
    setImmediate(() => {
      const took = performance.now() - begun;
      if (took > longMs) setTimeout(this.#startNext, took * restPart);
      else this.#startNext();
    });
  };
}
