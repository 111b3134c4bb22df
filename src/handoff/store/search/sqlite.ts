import { sql } from 'kysely';

import type { Database } from '../../../kit/sql/dialect.ts';
import { beginningOf } from '../../rules/words.ts';
import { matches, type PacketFilter } from '../packet-filter.ts';
import type { Tables } from '../tables.ts';
import { prefixOf } from './indexer.ts';
import {
  countUpTo,
  type FilteredQuery,
  type FoundMatch,
  type FullTextQuery,
  type IndexQuery,
  type MatchReads,
  type Newest,
  type RankedPage,
  type SearchBounds,
  TooWide,
} from './matches.ts';
import type { Pause } from './pauses.ts';

/** A prefix is expanded to its words, up to this many. For a prefix query SQLite collects every position before the first match. */
const maxWords = 1000;

/** Ranking takes up to twice as long as the counting before it, which makes three times in all. */
const rankingShare = 3;

/** Returns a function that writes a phrase as a full-text query, with every word quoted. */
function createPhraseWriter({ reads }: Database<Tables>) {
  let vocabulary: Promise<unknown> | undefined;

  /** The indexed words with the prefix, up to one more than `maxWords`, found by index lookups from one word to the next. */
  async function wordsWith(prefix: string): Promise<string[]> {
    vocabulary ??= sql`create virtual table if not exists temp.search_words using fts5vocab(main, search_index, instance)`.execute(reads);
    await vocabulary;
    const words: string[] = [];
    for (let next = prefix; words.length <= maxWords; next = `${words.at(-1)}\u0001`) {
      const { rows } = await sql<{ term: string }>`select term from temp.search_words where term >= ${next} limit 1`.execute(reads);
      const term = rows[0]?.term;
      if (!term?.startsWith(prefix)) break;
      words.push(term);
    }
    return words;
  }

  return async (words: readonly string[], tenant: number, wide: boolean): Promise<string> => {
    const named = words.map((word) => prefixOf(tenant) + word);
    const prefix = beginningOf(named.at(-1)!);
    if (prefix === undefined) return `"${named.join(' ')}"`;
    const terms = await wordsWith(prefix);
    const before = named.slice(0, -1);
    if (terms.length > maxWords) {
      if (wide) return `"${[...before, prefix].join(' ')}" *`;
      throw new TooWide();
    }
    const alternatives = (terms.length === 0 ? [prefix] : terms).map((word) => `"${[...before, word].join(' ')}"`);
    return `(${alternatives.join(' OR ')})`;
  };
}

const allOf = (queries: readonly string[]) => queries.join(' AND ');
const condition = (query: string) => sql<boolean>`search_index match ${query}`;

/** Searches SQLite's FTS5 index. */
export function createSqliteMatches(database: Database<Tables>, bounds: SearchBounds, pause: Pause): MatchReads {
  const { longReads: db } = database;
  const phraseQuery = createPhraseWriter(database);

  /** The matches. Words carry their tenant's prefix, so without a filter the index alone can rank and count. */
  function matching(query: string, tenant: number, filter: PacketFilter): IndexQuery {
    const found: IndexQuery = db.selectFrom('search_index').where(condition(query));
    if (Object.keys(filter).length === 0) return found;
    return found
      .innerJoin('packets', 'packets.seq', 'search_index.rowid')
      .where(matches(tenant, filter, { tagsPerPacket: true }) as never) as unknown as IndexQuery;
  }

  /** The phrases used for ranking: FTS5 reads every match of each, so a phrase with more matches than its share is left out. */
  async function rankingPhrases({ tenant, queries }: FullTextQuery): Promise<readonly string[]> {
    if (queries.length === 1) return queries;
    const share = Math.floor(bounds.ranked / queries.length);
    const kept: string[] = [];
    for (const phrase of queries) {
      if ((await countUpTo(database, share, matching(phrase, tenant, {}))) <= share) kept.push(phrase);
      await pause();
    }
    return kept;
  }

  async function ranked(search: FilteredQuery, page: RankedPage): Promise<number[] | undefined> {
    const { tenant, filter, queries } = search;
    const ranking = await rankingPhrases(search);
    if (ranking.length === 0) return undefined;
    await pause(rankingShare);
    let found = matching(allOf(ranking), tenant, filter);
    if (ranking.length < queries.length) {
      const all = db
        .selectFrom('search_index')
        .select('rowid')
        .where(condition(allOf(queries)));
      // The plus sign keeps SQLite from running the ranking query once for each row of `all`.
      found = found.where(sql<boolean>`+search_index.rowid in (${all})`);
    }
    // FTS5 can sort by rank only; ties come in the order of rows.
    const rows = await found.select('search_index.rowid').orderBy(sql`rank`).limit(page.limit).offset(page.offset).execute();
    return rows.map(({ rowid }) => Number(rowid));
  }

  /** Scans the matches from the newest and keeps those that pass the filter. */
  async function newest({ tenant, queries, filter }: FilteredQuery, after: string, most: number): Promise<Newest> {
    const before = after === '' ? Number.MAX_SAFE_INTEGER : Number(after);
    const isFiltered = Object.keys(filter).length > 0;
    const length = isFiltered ? bounds.scannedPackets : Math.min(bounds.scannedPackets, most);
    const scanned = db
      .selectFrom('search_index')
      .select('search_index.rowid as seq')
      .where(condition(allOf(queries)))
      .where('search_index.rowid', '<', before)
      .orderBy('search_index.rowid', 'desc')
      .limit(length);
    const matchesOf = (rows: { seq: number }[]): FoundMatch[] => rows.map(({ seq }) => ({ seq, place: String(seq) }));
    if (!isFiltered) {
      const found = matchesOf(await scanned.execute());
      return { found, end: found.length < length ? undefined : found.at(-1)?.place };
    }
    const { last, count } = await db
      .selectFrom(scanned.as('scanned'))
      .select([sql<number | null>`min(seq)`.as('last'), sql<number>`count(*)`.as('count')])
      .executeTakeFirstOrThrow();
    await pause();
    const found = await db
      .selectFrom(scanned.as('scanned'))
      // A cross join makes SQLite go from the matches to their packets, not the other way round.
      .crossJoin('packets')
      .select('scanned.seq')
      .whereRef('packets.seq', '=', 'scanned.seq')
      .where(matches(tenant, filter, { tagsPerPacket: true }) as never)
      .orderBy('scanned.seq', 'desc')
      .limit(most)
      .execute();
    return { found: matchesOf(found), end: count < length || last === null ? undefined : String(last) };
  }

  return {
    async plan({ tenant, phrases }, wide) {
      const queries: string[] = [];
      for (const phrase of phrases) queries.push(await phraseQuery(phrase, tenant, wide));
      return { tenant, queries, isCommon: false };
    },

    async countWord(tenant, word) {
      if (beginningOf(word) !== undefined) return bounds.ranked + 1;
      return countUpTo(database, bounds.ranked, matching(`"${prefixOf(tenant)}${word}"`, tenant, {}));
    },

    count: ({ tenant, queries }, filter, most) => countUpTo(database, most, matching(allOf(queries), tenant, filter)),

    ranked,
    newest,
  };
}
