/** What the live messages that wait for clients may take together, in bytes; those of one owner may take a quarter of it. */
const maxBytes = 64 * 1024 * 1024;

interface Held {
  readonly owner: string;
  /** How many streams it waits for. */
  count: number;
}

/**
 * The memory for live messages that wait for clients. Streams share a message, so it counts once, however many streams it
 * waits for.
 */
export class WaitingMemory {
  readonly #held = new Map<Buffer, Held>();
  readonly #ofOwner = new Map<string, number>();
  readonly #most: number;
  #bytes = 0;

  constructor(most = maxBytes) {
    this.#most = most;
  }

  hold(owner: string, message: Buffer): void {
    const held = this.#held.get(message);
    if (held !== undefined) held.count += 1;
    else {
      this.#held.set(message, { owner, count: 1 });
      this.#add(owner, message.length);
    }
  }

  letGo(message: Buffer): void {
    const held = this.#held.get(message)!;
    held.count -= 1;
    if (held.count > 0) return;
    this.#held.delete(message);
    this.#add(held.owner, -message.length);
  }

  /** The owner whose messages take too much: one above its share, else the one with the most when all together take too much. */
  tooMuch(owner: string): string | undefined {
    if ((this.#ofOwner.get(owner) ?? 0) > this.#most / 4) return owner;
    if (this.#bytes <= this.#most) return undefined;
    return [...this.#ofOwner].reduce((most, one) => (one[1] > most[1] ? one : most))[0];
  }

  #add(owner: string, bytes: number): void {
    this.#bytes += bytes;
    const own = (this.#ofOwner.get(owner) ?? 0) + bytes;
    if (own > 0) this.#ofOwner.set(owner, own);
    else this.#ofOwner.delete(owner);
  }
}
