/** A limit on the bytes held at once, by all owners together and by each of them. */
export class MemoryBudget<Owner = string> {
  /** The most that one owner may hold. */
  readonly share: number;
  readonly #limit: number;
  readonly #held = new Map<Owner, number>();
  #total = 0;

  /** @param bytes the limit for all owners together; one owner may hold a quarter of it */
  constructor(bytes: number) {
    this.#limit = bytes;
    this.share = bytes / 4;
  }

  /** The bytes that the owner holds. */
  heldBy(owner: Owner): number {
    return this.#held.get(owner) ?? 0;
  }

  /** Whether the owner can hold so many bytes more. */
  fits(owner: Owner, bytes: number): boolean {
    return this.#total + bytes <= this.#limit && this.heldBy(owner) + bytes <= this.share;
  }

  /** Reserves bytes for the owner; returns false and reserves nothing if a limit would be exceeded. */
  acquire(owner: Owner, bytes: number): boolean {
    if (!this.fits(owner, bytes)) return false;
    this.add(owner, bytes);
    return true;
  }

  /** Releases bytes that the owner holds. */
  release(owner: Owner, bytes: number): void {
    this.add(owner, -bytes);
  }

  /** Counts bytes that are held already, whatever the limits. */
  add(owner: Owner, bytes: number): void {
    this.#total += bytes;
    const own = this.heldBy(owner) + bytes;
    if (own > 0) this.#held.set(owner, own);
    else this.#held.delete(owner);
  }

  /** The owner that holds too much: this one above its share, else the one with the most when all together hold too much. */
  exceededBy(owner: Owner): Owner | undefined {
    if (this.heldBy(owner) > this.share) return owner;
    if (this.#total <= this.#limit) return undefined;
    return [...this.#held].reduce((most, one) => (one[1] > most[1] ? one : most))[0];
  }
}

/** Buffers that several holders share, such as a message for many clients. Each counts once, for the owner that held it first. */
export class SharedBuffers {
  readonly budget: MemoryBudget;
  readonly #holders = new Map<Buffer, { readonly owner: string; count: number }>();

  constructor(budget: MemoryBudget) {
    this.budget = budget;
  }

  /** Holds a buffer; returns false and holds nothing if a limit would be exceeded. */
  acquire(owner: string, buffer: Buffer): boolean {
    if (!this.#holders.has(buffer) && !this.budget.fits(owner, buffer.length)) return false;
    this.add(owner, buffer);
    return true;
  }

  /** Holds a buffer, whatever the limits. */
  add(owner: string, buffer: Buffer): void {
    const held = this.#holders.get(buffer);
    if (held !== undefined) held.count += 1;
    else {
      this.#holders.set(buffer, { owner, count: 1 });
      this.budget.add(owner, buffer.length);
    }
  }

  release(buffer: Buffer): void {
    const held = this.#holders.get(buffer)!;
    held.count -= 1;
    if (held.count > 0) return;
    this.#holders.delete(buffer);
    this.budget.release(held.owner, buffer.length);
  }
}
