import { type SelectQueryBuilder, sql } from 'kysely';

import { countOf } from '../../../kit/sql/count.ts';
import type { Database } from '../../../kit/sql/dialect.ts';
import type { PacketFilter } from '../packet-filter.ts';
import type { Page } from '../page-size.ts';
import type { Tables } from '../tables.ts';

/** Words that follow one another; the last one may be a prefix. */
export type Phrase = readonly string[];

/** What a search looks for. */
export interface SearchTerms {
  /** The tenant's number. */
  readonly tenant: number;
  /** All of them must occur. */
  readonly phrases: readonly Phrase[];
}

/** A search as full-text queries in the database's language. */
export interface FullTextQuery {
  readonly tenant: number;
  /** One query per phrase; all must match. */
  readonly queries: readonly string[];
  /** PostgreSQL: the query for one rare word. The index finds its packets, and each is then checked against all of `queries`. */
  readonly rareWord?: string | undefined;
}

/** A full-text query with its filter. */
export type FilteredQuery = FullTextQuery & { readonly filter: PacketFilter };

/** A match and its sort key in the order of creation, in the database's own form. */
export interface FoundMatch {
  readonly seq: number;
  readonly sortKey: string;
}

/** Matches, newest first; `end`: the sort key where the scan stopped, if there may be more matches after it. */
export interface Newest {
  readonly found: readonly FoundMatch[];
  readonly end: string | undefined;
}

/** The limits of one search. */
export interface SearchLimits {
  /** The most matches that are ranked: ranking reads all of them, about 0.8 µs each, and a word in more packets has little meaning. */
  readonly ranked: number;
  /** SQLite: the most packets with the words of a phrase, or with all words that count for the rank, whose positions are read. */
  readonly readPositions: number;
  /** Matches are counted up to this number. */
  readonly counted: number;
  /** The most packets scanned for one page, newest first; with a filter also the most matches that are ranked. */
  readonly scannedPackets: number;
  /** The most packets whose texts are scanned for one page. */
  readonly scannedTexts: number;
  /** PostgreSQL counts matches only if it expects one of the words in at most this many packets. */
  readonly expected: number;
}

/** Limits that keep a search near a tenth of a second. PostgreSQL has to read the words of every packet that it scans. */
export const searchLimits = (database: Database<Tables>['name']): SearchLimits => ({
  ranked: 5_000,
  readPositions: 50_000,
  counted: 100_000,
  scannedPackets: 20_000,
  scannedTexts: database === 'sqlite' ? 2_000 : 5_000,
  expected: 10_000,
});

/** The `seq` of the matches of a page, best first, and how many matches pass the filter. */
export interface RankedMatches {
  readonly seqs: readonly number[];
  readonly total: number;
}

/** Finds, counts and orders the matches of a search, each within limits even for very common words. */
export interface MatchReads {
  /**
   * The search in the database's language. `isCommon`: collecting the matches would take too long, so the newest packets
   * are scanned instead.
   * @throws OverBudget
   */
  plan: (search: SearchTerms) => Promise<FullTextQuery & { readonly isCommon: boolean }>;
  /**
   * The number of packets with the word, at most `readPositions + 1`, which a prefix returns. 0 on a database where the cost of
   * a phrase does not depend on how common its words are.
   */
  countWord(tenant: number, word: string): Promise<number>;
  /** The number of matches without the filter: exact up to `most`, and `most` + 1 when there are more. */
  count(search: FullTextQuery, most: number): Promise<number>;
  /** A page of the matches that pass the filter; undefined when they can't be ranked. `counted`: the number without the filter. */
  ranked(search: FilteredQuery, page: Page, counted: number): Promise<RankedMatches | undefined>;
  /** Up to `most` matches after a sort key (empty: from the newest), newest first. */
  newest(search: FilteredQuery, after: string, most: number): Promise<Newest>;
}

/** Rows of the search index. */
export type IndexQuery = SelectQueryBuilder<Tables, 'search_index', unknown>;

/** The number of rows of the query, counted up to `bound` + 1; also `bound` + 1 when the database times out. */
export async function countUpTo(database: Database<Tables>, bound: number, rows: IndexQuery): Promise<number> {
  const some = rows
    .select(sql<number>`1`.as('one'))
    .limit(bound + 1)
    .as('some');
  try {
    return await countOf(database.longReads.selectFrom(some));
  } catch (error) {
    if (!database.isTimeout(error)) throw error;
    return bound + 1;
  }
}
