/** How many bytes may be held at once, by all owners together and by one of them. */
export class MemoryBudget {
  readonly #share: number;
  readonly #acquired = new Map<string, number>();
  #left: number;

  /** @param bytes what all owners may hold together; one may hold a quarter of it */
  constructor(bytes: number) {
    this.#left = bytes;
    this.#share = bytes / 4;
  }

  /** Holds so many bytes more for the owner; false, and nothing is held, when that is more than may be. */
  acquire(owner: string, bytes: number): boolean {
    const own = (this.#acquired.get(owner) ?? 0) + bytes;
    if (bytes > this.#left || own > this.#share) return false;
    this.#left -= bytes;
    this.#acquired.set(owner, own);
    return true;
  }

  /** Gives back bytes that the owner holds. */
  release(owner: string, bytes: number): void {
    this.#left += bytes;
    const own = (this.#acquired.get(owner) ?? 0) - bytes;
    if (own > 0) this.#acquired.set(owner, own);
    else this.#acquired.delete(owner);
  }
}
