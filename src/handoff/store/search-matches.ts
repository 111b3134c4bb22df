import { type SelectQueryBuilder, sql } from 'kysely';

import type { Database } from '../../kit/sql/dialect.ts';
import type { PacketFilter } from './packets.ts';
import type { Tables } from './tables.ts';

/** Words and a filter of one tenant's. */
export interface SearchFor {
  /** The tenant's number. */
  readonly tenant: number;
  /** Runs of words, all of which must occur; the last word of a run may be a prefix. */
  readonly phrases: readonly (readonly string[])[];
  readonly filter: PacketFilter;
}

/** What the words of a search match. */
export type Matches = Pick<SearchFor, 'tenant' | 'phrases'>;

/** A search in the database's own full-text language. */
export interface Spelled {
  readonly tenant: number;
  /** A query for each phrase, all of which must match. */
  readonly spelled: readonly string[];
  /** PostgreSQL: the query of one rare word, which leads to packets that are then compared with all of `spelled`. */
  readonly led?: string | undefined;
}

/** A search with the filter that its matches must pass. */
export type Filtered = Spelled & Pick<SearchFor, 'filter'>;

/** A match, and its place in the order of creation as the database knows it. */
export interface Placed {
  readonly seq: number;
  readonly place: string;
}

/** Matches, newest first; `end`: the place where the walk stopped, if there may be more matches behind it. */
export interface Newest {
  readonly found: readonly Placed[];
  readonly end: string | undefined;
}

/** How far one search goes. */
export interface SearchBounds {
  /** The most matches that are ranked: ranking reads all of them, and a word in more packets says little. */
  readonly ranked: number;
  /** Matches are counted up to this number. */
  readonly counted: number;
  /** How many packets are looked through for one page, newest first; with a filter no more matches than this are ranked. */
  readonly lookedThrough: number;
  /** How many packets' texts are looked through for one page. */
  readonly readThrough: number;
  /** PostgreSQL counts matches where it expects a word, or a word of a phrase, in no more packets than this. */
  readonly expected: { readonly words: number; readonly phrases: number };
}

/** What a search does in about a tenth of a second; PostgreSQL reads every packet that it looks through for its words. */
export const searchBounds = (database: Database<Tables>['name']): SearchBounds => ({
  ranked: database === 'sqlite' ? 50_000 : 5_000,
  counted: 100_000,
  lookedThrough: 20_000,
  readThrough: database === 'sqlite' ? 2_000 : 5_000,
  expected: { words: 100_000, phrases: 10_000 },
});

/** A page in the order of rank. */
export interface RankedPage {
  readonly limit: number;
  readonly offset: number;
}

/** Finding, counting and ordering what the words of a search match. All of it is bounded, however common the words. */
export interface MatchReads {
  /**
   * The search in the database's language. `isCommon`: the database would take too long to collect the matches, and the
   * newest packets are looked through instead.
   * @throws TooWide unless `wide`
   */
  plan(search: Matches, wide: boolean): Promise<Spelled & { readonly isCommon: boolean }>;
  /**
   * How many packets have the word, counted up to one more than are ranked; a prefix counts as that many. 0 where a phrase
   * costs the same however common its words are.
   */
  countWord(tenant: number, word: string): Promise<number>;
  /** How many matches pass the filter: exact up to `most`, and one more than `most` when there are more. */
  count(search: Spelled, filter: PacketFilter, most: number): Promise<number>;
  /** A page of matches by their numbers, best first; undefined when they can't be ranked. */
  ranked(search: Filtered, page: RankedPage): Promise<number[] | undefined>;
  /** Up to `most` matches behind a place (empty: from the newest on), newest first. */
  newest(search: Filtered, after: string, most: number): Promise<Newest>;
}

/** A prefix stands for so many words that SQLite would take long in one step. */
export class TooWide extends Error {}

/** Rows of the search index. */
export type IndexQuery = SelectQueryBuilder<Tables, 'search_index', unknown>;

/** How many rows the query gives, counted up to one more than `bound`; that many too when the database needs too long. */
export async function countUpTo(database: Database<Tables>, bound: number, rows: IndexQuery): Promise<number> {
  const some = rows
    .select(sql<number>`1`.as('one'))
    .limit(bound + 1)
    .as('some');
  try {
    return Number((await database.longReads.selectFrom(some).select(sql<number>`count(*)`.as('count')).executeTakeFirstOrThrow()).count);
  } catch (error) {
    if (!database.isTimeout(error)) throw error;
    return bound + 1;
  }
}
