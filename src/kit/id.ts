import { randomFillSync } from 'node:crypto';

/** Fills a buffer with random bytes. */
export type RandomSource = (bytes: Buffer) => void;

/** The random bytes of the system. */
export const systemRandom: RandomSource = (bytes) => {
  randomFillSync(bytes);
};

/** A random number from 0 up to but not including 1, with 32 bits. */
export function randomFraction(random: RandomSource): number {
  const bytes = Buffer.alloc(4);
  random(bytes);
  return bytes.readUInt32BE() / 2 ** 32;
}

/** Creates an id whose first 48 bits are `at`, so that the text order of ids is their time order. */
export type NewId = (at: Date) => string;

const poolBytes = 4096;

/**
 * Creates a generator of UUIDs version 7 (RFC 9562, method 1: a counter that starts at a random value and rises within a millisecond).
 * An id contains exactly the given millisecond, so ordering by id is ordering by `(created_at, id)`.
 * Random bytes come from a pool, because a system call for each id would cost more than everything else here.
 */
export function createIds(random: RandomSource = systemRandom): NewId {
  const pool = Buffer.allocUnsafe(poolBytes);
  let used = poolBytes;
  let lastMillisecond = -1;
  let counter = 0;

  return (at) => {
    if (used + 10 > poolBytes) {
      random(pool);
      used = 0;
    }
    const millisecond = at.getTime();
    if (millisecond === lastMillisecond && counter < 0xfff) {
      counter += 1;
    } else {
      // Starting below 0x800 leaves room for 2,048 more ids in this millisecond before their order is lost.
      counter = pool.readUInt16BE(used) & 0x7ff;
      lastMillisecond = millisecond;
    }
    const time = millisecond.toString(16).padStart(12, '0');
    const variant = (0x80 | (pool[used + 2]! & 0x3f)).toString(16);
    const rest = pool.toString('hex', used + 3, used + 10);
    used += 10;
    return `${time.slice(0, 8)}-${time.slice(8)}-7${counter.toString(16).padStart(3, '0')}-${variant}${rest.slice(0, 2)}-${rest.slice(2)}`;
  };
}

/** Creates a generator of random texts: 16 bytes in lower-case hexadecimal, taken from a pool as those of ids are. */
export function createSalts(random: RandomSource = systemRandom): () => string {
  const pool = Buffer.allocUnsafe(poolBytes);
  let used = poolBytes;
  return () => {
    if (used === poolBytes) {
      random(pool);
      used = 0;
    }
    used += 16;
    return pool.toString('hex', used - 16, used);
  };
}

/** The lowest UUID version 7 of a millisecond: ids created earlier are smaller, ids created from then on are not. */
export function lowestIdAt(at: Date): string {
  const time = Math.max(0, at.getTime()).toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`;
}

/** The time in a UUID version 7, at which the id was created. */
export function createdAt(id: string): Date {
  return new Date(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16));
}
