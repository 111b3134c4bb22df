/** What has arrived at a server of a test, in order. */
export class Arrivals<T> {
  readonly all: T[] = [];
  readonly #waiting = new Set<() => void>();

  add(one: T): void {
    this.all.push(one);
    for (const check of this.#waiting) check();
  }

  /** Resolves once `count` have arrived. */
  reached(count: number): Promise<void> {
    return new Promise((resolve) => {
      const check = () => {
        if (this.all.length < count) return;
        this.#waiting.delete(check);
        resolve();
      };
      this.#waiting.add(check);
      check();
    });
  }
}
