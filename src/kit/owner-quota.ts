/** Limits how many of a resource, such as open streams, each owner holds at the same time. */
export class OwnerQuota {
  readonly #counts = new Map<string, number>();

  /** Acquires one more for an owner. Returns the function that releases it, or undefined if the limit is reached. */
  acquire(owner: string, limit: number): (() => void) | undefined {
    const count = this.#counts.get(owner) ?? 0;
    if (count >= limit) return undefined;
    this.#counts.set(owner, count + 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      const left = this.#counts.get(owner)! - 1;
      if (left === 0) this.#counts.delete(owner);
      else this.#counts.set(owner, left);
    };
  }
}
