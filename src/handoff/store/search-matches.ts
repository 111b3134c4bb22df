import { type Kysely, type SelectQueryBuilder, type SqlBool, sql } from 'kysely';

import { nextTurn } from '../../kit/awaitable.ts';
import type { Database } from '../../kit/sql/dialect.ts';
import { beginningOf } from '../rules/words.ts';
import { matches, type PacketFilter } from './packets.ts';
import { prefixOf } from './search-index.ts';
import type { Tables } from './tables.ts';

/** Words and a filter of one tenant's. */
export interface SearchFor {
  /** The tenant's number. */
  readonly tenant: number;
  /** Runs of words, all of which must occur; the last of a run may be a beginning. */
  readonly phrases: readonly (readonly string[])[];
  readonly filter: PacketFilter;
}

/** What the words of a search match. */
export type Matches = Pick<SearchFor, 'tenant' | 'phrases'>;

/** How far one search goes. */
export interface SearchBounds {
  /** Matches are ranked while there are at most so many: ranking reads all of them, and a word in more packets tells little. */
  readonly ranked: number;
  /** Matches are counted up to so many. */
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

/** How many of them PostgreSQL reads at first; common words are found among few. */
const firstStep = 200;

/** A match, and its place in the order of creation as the database knows it. */
export interface Placed {
  readonly seq: number;
  readonly place: string;
}

/** A search whose phrases are spelled as the database's full-text queries, each of which must be met. */
export interface Spelled {
  readonly tenant: number;
  readonly spelled: readonly string[];
}

/** For up to how many words a beginning stands as those words; of more SQLite collects every place before the first match. */
const maxWords = 1000;

/** A beginning stands for very many words: a search for them takes long in one go. */
export class TooWide extends Error {}

/** Spells the phrases of searches. Words are the tenant's own; every word is quoted. */
function createSpelling(database: Database<Tables>): (search: Matches, wide: boolean) => Promise<readonly string[]> {
  const { reads, name } = database;
  let vocabulary: Promise<unknown> | undefined;

  /** The words that begin so, skipping from one to the next through the index. */
  async function wordsThatBegin(beginning: string): Promise<string[]> {
    vocabulary ??= sql`create virtual table if not exists temp.search_words using fts5vocab(main, search_index, instance)`.execute(reads);
    await vocabulary;
    const words: string[] = [];
    for (let next = beginning; words.length <= maxWords; next = `${words.at(-1)}\u0001`) {
      const { rows } = await sql<{ term: string }>`select term from temp.search_words where term >= ${next} limit 1`.execute(reads);
      const term = rows[0]?.term;
      if (!term?.startsWith(beginning)) break;
      words.push(term);
    }
    return words;
  }

  async function forSqlite(words: readonly string[], prefix: string, wide: boolean): Promise<string> {
    const named = words.map((word) => prefix + word);
    const begins = beginningOf(named.at(-1)!);
    if (begins === undefined) return `"${named.join(' ')}"`;
    const meant = await wordsThatBegin(begins);
    const before = named.slice(0, -1);
    if (meant.length > maxWords) {
      if (wide) return `"${[...before, begins].join(' ')}" *`;
      throw new TooWide();
    }
    const alternatives = (meant.length === 0 ? [begins] : meant).map((word) => `"${[...before, word].join(' ')}"`);
    return `(${alternatives.join(' OR ')})`;
  }

  function forPostgres(words: readonly string[], prefix: string): string {
    return `(${words.map((word) => `'${prefix}${beginningOf(word) ?? word}'${beginningOf(word) === undefined ? '' : ':*'}`).join(' <-> ')})`;
  }

  return async ({ tenant, phrases }, wide) => {
    const prefix = prefixOf(tenant);
    const spelled: string[] = [];
    for (const phrase of phrases) spelled.push(name === 'sqlite' ? await forSqlite(phrase, prefix, wide) : forPostgres(phrase, prefix));
    return spelled;
  };
}

type Query = SelectQueryBuilder<Tables, 'search_index', unknown>;

/** Finding, counting and ordering what the words of a search match. Everything here is bounded, however common the words. */
export function createMatches(database: Database<Tables>, bounds: SearchBounds) {
  const { longReads: db, name } = database;
  const isSqlite = name === 'sqlite';
  const spell = createSpelling(database);
  const together = (spelled: readonly string[]) => spelled.join(isSqlite ? ' AND ' : ' & ');

  const condition = (query: string) =>
    isSqlite ? sql<boolean>`search_index match ${query}` : sql<boolean>`search_index.words @@ ${query}::tsquery`;

  /** What matches. Words are the tenant's own, so without a filter the index alone can rank and count. */
  function matching(query: string, tenant: number, filter: PacketFilter): Query {
    const found: Query = db.selectFrom('search_index').where(condition(query));
    if (Object.keys(filter).length === 0) return found;
    return found
      .innerJoin('packets', 'packets.seq', 'search_index.rowid')
      .where(matches(tenant, filter, { ledTo: true }) as never) as unknown as Query;
  }

  /** How many match, counted no further than one beyond the bound; that too when the database needs too long for it. */
  async function countUpTo(bound: number, found: Query): Promise<number> {
    const some = found
      .select(sql<number>`1`.as('one'))
      .limit(bound + 1)
      .as('some');
    try {
      return Number((await db.selectFrom(some).select(sql<number>`count(*)`.as('count')).executeTakeFirstOrThrow()).count);
    } catch (error) {
      if (!database.isTooLong(error)) throw error;
      return bound + 1;
    }
  }

  /** The phrases by which SQLite ranks: its rank reads every match of each, so each has its share of what can be read. */
  async function telling({ tenant, spelled }: Spelled): Promise<readonly string[]> {
    if (spelled.length === 1) return spelled;
    const share = Math.floor(bounds.ranked / spelled.length);
    const kept: string[] = [];
    for (const phrase of spelled) {
      if ((await countUpTo(share, matching(phrase, tenant, {}))) <= share) kept.push(phrase);
      await nextTurn();
    }
    return kept;
  }

  async function rankedInSqlite(search: Filtered, page: { limit: number; offset: number }): Promise<number[] | undefined> {
    const { tenant, filter, spelled } = search;
    const ranking = await telling(search);
    if (ranking.length === 0) return undefined;
    let found = matching(together(ranking), tenant, filter);
    if (ranking.length < spelled.length) {
      const all = db
        .selectFrom('search_index')
        .select('rowid')
        .where(condition(together(spelled)));
      // The sign keeps SQLite from running the ranking query once for each of them.
      found = found.where(sql<boolean>`+search_index.rowid in (${all})`);
    }
    // FTS5 sorts by rank alone, and equals by row.
    const rows = await found.select('search_index.rowid').orderBy(sql`rank`).limit(page.limit).offset(page.offset).execute();
    return rows.map(({ rowid }) => Number(rowid));
  }

  async function rankedInPostgres(search: Filtered, page: { limit: number; offset: number }): Promise<number[] | undefined> {
    const query = together(search.spelled);
    const found = matching(query, search.tenant, search.filter)
      .select('search_index.rowid')
      .orderBy(sql`-ts_rank(search_index.words, ${query}::tsquery), search_index.rowid`)
      .limit(page.limit)
      .offset(page.offset);
    try {
      return (await found.execute()).map(({ rowid }) => Number(rowid));
    } catch (error) {
      if (!database.isTooLong(error)) throw error;
      return undefined;
    }
  }

  /** SQLite walks the matches backwards, and looks which of them the filter lets through. */
  async function newestInSqlite({ filter, ...search }: Filtered, after: string, most: number): Promise<Newest> {
    const before = after === '' ? Number.MAX_SAFE_INTEGER : Number(after);
    const isFiltered = Object.keys(filter).length > 0;
    const length = isFiltered ? bounds.lookedThrough : Math.min(bounds.lookedThrough, most);
    const walked = db
      .selectFrom('search_index')
      .select('search_index.rowid as seq')
      .where(condition(together(search.spelled)))
      .where('search_index.rowid', '<', before)
      .orderBy('search_index.rowid', 'desc')
      .limit(length);
    const placed = (rows: { seq: number }[]): Placed[] => rows.map(({ seq }) => ({ seq, place: String(seq) }));
    if (!isFiltered) {
      const found = placed(await walked.execute());
      return { found, end: found.length < length ? undefined : found.at(-1)?.place };
    }
    const { last, count } = await db
      .selectFrom(walked.as('walked'))
      .select([sql<number | null>`min(seq)`.as('last'), sql<number>`count(*)`.as('count')])
      .executeTakeFirstOrThrow();
    await nextTurn();
    const found = await db
      .selectFrom(walked.as('walked'))
      // Crossed, so that SQLite goes from the matches to their packets and not the other way round.
      .crossJoin('packets')
      .select('walked.seq')
      .whereRef('packets.seq', '=', 'walked.seq')
      .where(matches(search.tenant, filter, { ledTo: true }) as never)
      .orderBy('walked.seq', 'desc')
      .limit(most)
      .execute();
    return { found: placed(found), end: count < length || last === null ? undefined : String(last) };
  }

  /** How many packets PostgreSQL expects to match, by what it knows of words; a word bears its tenant. */
  async function expected(query: string): Promise<number> {
    const [row] = await db.selectFrom('search_index').select('rowid').where(condition(query)).explain('json');
    const [{ Plan: plan }] = row!['QUERY PLAN'] as [{ Plan: { 'Plan Rows': number } }];
    return plan['Plan Rows'];
  }

  /**
   * Whether PostgreSQL would take too long to count the matches: it collects all packets of every word before the first
   * match, and compares the places of a phrase's words packet by packet. Then the newest packets are looked through.
   */
  async function isTooMuchToCount({ tenant, phrases }: Matches): Promise<boolean> {
    if (isSqlite) return false;
    const most = phrases.some(({ length }) => length > 1) ? bounds.expected.phrases : bounds.expected.words;
    // Of beginnings it knows too little.
    const words = phrases.flat().filter((word) => beginningOf(word) === undefined);
    const spelling = await spell({ tenant, phrases: words.map((word) => [word]) }, true);
    for (const word of spelling) if ((await expected(word)) <= most) return false;
    return words.length > 0;
  }

  /** PostgreSQL would collect all matches before it gives the first: it walks the packets backwards, and looks which match. */
  async function newestInPostgres({ filter, ...search }: Filtered, after: string, most: number): Promise<Newest> {
    const query = together(search.spelled);
    // For a phrase it reads where all the words of a packet stand.
    const lookedThrough = query.includes('<->') ? bounds.readThrough : bounds.lookedThrough;
    const found: Placed[] = [];
    let place = after;
    let looked = 0;
    for (let step = firstStep; looked < lookedThrough; step *= 4) {
      step = Math.min(step, lookedThrough - looked);
      const rows = await packetsBefore(db, search.tenant, filter, place, step, query).catch((error: unknown) => {
        if (!database.isTooLong(error) || looked === 0) throw error;
        return undefined;
      });
      if (rows === undefined) return { found, end: place };
      for (const { seq, id, met } of rows) if (met === true && found.length < most) found.push({ seq: Number(seq), place: id });
      looked += rows.length;
      if (rows.length < step) return { found, end: undefined };
      place = rows.at(-1)!.id;
      if (found.length >= most) break;
    }
    return { found, end: place };
  }

  return {
    /** The phrases of a search as the others take them. @throws TooWide unless `wide` */
    spell,

    isTooMuchToCount,

    /** How many packets have the word, counted no further than one beyond what is ranked; the beginning of a word counts as so many. */
    async countWord(tenant: number, word: string): Promise<number> {
      if (beginningOf(word) !== undefined) return bounds.ranked + 1;
      return countUpTo(bounds.ranked, matching(`"${prefixOf(tenant)}${word}"`, tenant, {}));
    },

    /** How many packets match, and are let through: exact up to so many, one more when there are more. */
    count: ({ tenant, spelled }: Spelled, filter: PacketFilter, most: number) =>
      countUpTo(most, matching(together(spelled), tenant, filter)),

    /** A page of matches, best first, by their numbers; undefined when they can't be ranked. */
    ranked: isSqlite ? rankedInSqlite : rankedInPostgres,

    /**
     * The matches behind a place (empty: from the newest on), newest first, up to so many; `end`: up to where a stretch was
     * looked through, if there may be more behind it.
     */
    newest: isSqlite ? newestInSqlite : newestInPostgres,

    /** The condition that a packet is one of these. The sign keeps SQLite from looking through all of the tenant's. */
    among: (tenant: number, seqs: readonly number[]) =>
      isSqlite
        ? sql<SqlBool>`+packets.tenant = ${tenant} and packets.seq in (select value from json_each(${JSON.stringify(seqs)}))`
        : sql<SqlBool>`packets.tenant = ${tenant} and packets.seq = any(${seqs}::bigint[])`,
  };
}

export type Filtered = Spelled & Pick<SearchFor, 'filter'>;

/** Matches, newest first; `end`: up to where they were looked for, if there may be more behind it. */
export interface Newest {
  readonly found: readonly Placed[];
  readonly end: string | undefined;
}

/** So many of a tenant's packets before an id, newest first, and whether each meets the query. */
function packetsBefore(db: Kysely<Tables>, tenant: number, filter: PacketFilter, before: string, count: number, query: string) {
  const walked = db
    .selectFrom('packets')
    .select(['packets.seq', 'packets.id'])
    .where(matches(tenant, filter) as never)
    .$if(before !== '', (rest) => rest.where('packets.id', '<', before))
    .orderBy('packets.id', 'desc')
    .limit(count);
  return db
    .selectFrom(walked.as('walked'))
    .select(['walked.seq', 'walked.id'])
    .select((eb) =>
      eb
        .selectFrom('search_index')
        .whereRef('search_index.rowid', '=', 'walked.seq')
        .select(sql<boolean>`search_index.words @@ ${query}::tsquery`.as('met'))
        .as('met'),
    )
    .orderBy('walked.id', 'desc')
    .execute();
}
