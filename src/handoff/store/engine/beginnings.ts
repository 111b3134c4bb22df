import type { Clock } from '../../../kit/clock.ts';
import type { FreeSearch } from './free-search.ts';

/** After how many found rows, and after how many milliseconds, the beginning of a search is looked up again. */
const rowsBetween = 32;
const msBetween = 250;

/** A search that has not run for so long begins with all rows again, in milliseconds: its trail has grown too much to be read. */
const forgottenMs = 10_000;

/** How often a search in use looks at all rows, in milliseconds. */
const wholeMs = 60_000;

/** The most rows that a beginning names. */
const maxReturned = 200;

/** How many searches have a beginning. */
const maxSearches = 10_000;

/**
 * Where a search for free rows begins. All rows that were free when the trail ended at `position` have a place from the floor of their
 * ranked value on, or are among `returned`. Places are texts: see `placeSql`.
 */
export interface Beginning {
  readonly position: number;
  /** By ranked value. */
  readonly floors: ReadonlyMap<string, string>;
  readonly returned: readonly string[];
}

/** What a look at free rows found, all of it committed by the end of the trail at `position` or later. */
interface Look {
  readonly position: number;
  /** The first free place from the floor on, by ranked value; null: none. */
  readonly first: ReadonlyMap<string, string | null>;
  /** The last place of all rows, free or not; null: there are none. */
  readonly last: string | null;
  /** The places below their floor that are free. */
  readonly returned: readonly string[];
}

interface Known {
  beginning: Beginning;
  lookedAt: number;
  wholeAt: number;
  found: number;
}

/**
 * Where searches for free rows begin, so that they do not visit the index entries of rows that are free no longer: PostgreSQL can't
 * remove them while another session holds an older snapshot, which is as long as a dump takes. A beginning is exact for every
 * instance: the trail tells which rows have become free since.
 */
export class Beginnings {
  readonly #clock: Clock;
  /** Used least recently first. */
  readonly #known = new Map<string, Known>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Where a search begins; undefined: with all rows. */
  of(search: FreeSearch): Beginning | undefined {
    return this.#of(keyOf(search))?.beginning;
  }

  /** Whether it is time to look up where a search begins, and where that look begins; undefined: with all rows. */
  due(search: FreeSearch): { readonly from: Beginning | undefined } | undefined {
    const known = this.#of(keyOf(search));
    const now = this.#clock().getTime();
    if (known === undefined || Math.abs(now - known.wholeAt) >= wholeMs) return { from: undefined };
    if (known.found < rowsBetween && Math.abs(now - known.lookedAt) < msBetween) return undefined;
    return { from: known.beginning };
  }

  /** Notes how many rows a search has found. */
  found(search: FreeSearch, count: number): void {
    const known = this.#known.get(keyOf(search));
    if (known !== undefined) known.found += count;
  }

  /** Notes what a look found that began at `from`. */
  looked(search: FreeSearch, from: Beginning | undefined, { position, first, last, returned }: Look): void {
    const key = keyOf(search);
    const now = this.#clock().getTime();
    const lowest = returned.length > maxReturned ? returned.reduce((least, place) => (place < least ? place : least)) : undefined;
    const floors = new Map<string, string>();
    for (const [value, place] of first) {
      const before = from?.floors.get(value) ?? '';
      // Any floor is right for a value without a free row, since the trail has all that become free.
      const floor = place ?? (last !== null && last > before ? last : before);
      floors.set(value, lowest !== undefined && lowest < floor ? lowest : floor);
    }
    const wholeAt = from === undefined ? now : (this.#known.get(key)?.wholeAt ?? now);
    this.#known.delete(key);
    this.#known.set(key, {
      beginning: { position, floors, returned: lowest === undefined ? returned : [] },
      ...{ lookedAt: now, wholeAt, found: 0 },
    });
    const [oldest] = this.#known.keys();
    if (this.#known.size > maxSearches) this.#known.delete(oldest!);
  }

  #of(key: string): Known | undefined {
    const known = this.#known.get(key);
    if (known === undefined || Math.abs(this.#clock().getTime() - known.lookedAt) < forgottenMs) return known;
    this.#known.delete(key);
    return undefined;
  }
}

const keyOf = ({ where, by, among, ranked }: FreeSearch): string => JSON.stringify([where, by, among, ranked.values]);
