/** A limit on the bytes held at once, by all owners together and by each of them. */
export class MemoryBudget {
  /** The most that one owner may hold. */
  readonly share: number;
  readonly #acquired = new Map<string, number>();
  #left: number;

  /** @param bytes the limit for all owners together; one owner may hold a quarter of it */
  constructor(bytes: number) {
    this.#left = bytes;
    this.share = bytes / 4;
  }

  /** The bytes that the owner holds. */
  heldBy(owner: string): number {
    return this.#acquired.get(owner) ?? 0;
  }

  /** Reserves bytes for the owner; returns false and reserves nothing if a limit would be exceeded. */
  acquire(owner: string, bytes: number): boolean {
    const own = this.heldBy(owner) + bytes;
    if (bytes > this.#left || own > this.share) return false;
    this.#left -= bytes;
    this.#acquired.set(owner, own);
    return true;
  }

  /** Releases bytes that the owner holds. */
  release(owner: string, bytes: number): void {
    this.#left += bytes;
    const own = this.heldBy(owner) - bytes;
    if (own > 0) this.#acquired.set(owner, own);
    else this.#acquired.delete(owner);
  }
}
