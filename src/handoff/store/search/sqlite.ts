import { sql } from 'kysely';

import type { Database } from '../../../kit/sql/dialect.ts';
import { queryPrefix } from '../../rules/tokenizer.ts';
import { matches, type PacketFilter } from '../packet-filter.ts';
import type { Page } from '../page-size.ts';
import type { Tables } from '../tables.ts';
import { sumOf } from '../totals.ts';
import type { Budget } from './budget.ts';
import { prefixOf } from './indexer.ts';
import {
  countUpTo,
  type FilteredQuery,
  type FullTextQuery,
  type IndexQuery,
  type MatchReads,
  type Newest,
  type Phrase,
  type RankedMatches,
  type SearchLimits,
} from './matches.ts';

/** A prefix is expanded to its words, up to this many. For a prefix query SQLite collects every position before the first match. */
const maxWords = 1000;

/** How many words of a prefix are looked up before other reads run. */
const lookedUpAtOnce = 100;

/** How many packets are compared with a filter before other reads run. */
const filteredAtOnce = 1000;

/**
 * What statements cost beside reading a row, in steps, measured with 500,000 packets: to open a word's list, to skip from one
 * row of it to another far away, to rank a packet by one phrase.
 */
const steps = { open: 3000, skip: 400, rank: 30 };

/** In a list of alternatives a word costs this part of a step for each row. */
const alternativeShare = 0.1;

/** A phrase as a full-text query. */
interface PhraseQuery {
  readonly query: string;
  /** About how many steps it takes for each packet. */
  readonly words: number;
  /** How many words it opens. */
  readonly lists: number;
  /** Queries of one list each, all of which a match is in. */
  readonly parts: readonly string[];
}

/** Returns a function that writes a phrase as a full-text query, with every word quoted. */
function createPhraseWriter({ reads }: Database<Tables>, budget: Budget) {
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
      if (words.length % lookedUpAtOnce === 0) await budget.pause();
    }
    return words;
  }

  return async (phrase: Phrase, tenant: number): Promise<PhraseQuery> => {
    const named = phrase.map((word) => prefixOf(tenant) + word);
    const prefix = queryPrefix(named.at(-1)!);
    const parts = named.map((word) => `"${word}"`);
    if (prefix === undefined) return { query: `"${named.join(' ')}"`, words: named.length, lists: named.length, parts };
    const terms = await wordsWith(prefix);
    const before = named.slice(0, -1);
    const lists = named.length * terms.length;
    const words = named.length * (1 + alternativeShare * terms.length);
    if (terms.length > maxWords) {
      budget.allow(Number.POSITIVE_INFINITY);
      return { query: `"${[...before, prefix].join(' ')}" *`, words, lists, parts: [] };
    }
    const alternatives = (terms.length === 0 ? [prefix] : terms).map((word) => `"${[...before, word].join(' ')}"`);
    const query = `(${alternatives.join(' OR ')})`;
    return { query, words, lists, parts: before.length === 0 ? [query] : parts.slice(0, -1) };
  };
}

const allOf = (queries: readonly string[]) => queries.join(' AND ');
const condition = (query: string) => sql<boolean>`search_index match ${query}`;

const totalOf = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0);

/** Searches SQLite's FTS5 index. */
export function createSqliteMatches(database: Database<Tables>, limits: SearchLimits, budget: Budget): MatchReads {
  const { longReads: db } = database;
  const phraseQuery = createPhraseWriter(database, budget);

  /** The matches. Words carry their tenant's prefix, so the index alone can rank and count. */
  const matching = (query: string): IndexQuery => db.selectFrom('search_index').where(condition(query));

  /**
   * Refuses a search of several words that may read too many rows in one statement. SQLite skips in the lists of the other
   * words from one packet of the rarest word to the next, and looks for the first packet with all of them without interruption.
   * @throws OverBudget
   */
  async function allowReading(tenant: number, phrases: readonly PhraseQuery[]): Promise<void> {
    const words = totalOf(phrases.map((phrase) => phrase.words));
    budget.allow(steps.open * totalOf(phrases.map(({ lists }) => lists)));
    if (words === 1 || budget.steps === Number.POSITIVE_INFINITY) return;
    const { sum: packets } = await sumOf(db, tenant, 'packets:', 'packets:~').executeTakeFirstOrThrow();
    if (words * Number(packets) <= budget.steps) return;
    const rare = Math.floor(budget.steps / (steps.skip * words));
    for (const part of phrases.flatMap(({ parts }) => parts)) {
      if ((await countUpTo(database, rare, matching(part))) <= rare) return;
      await budget.pause();
    }
    budget.allow(words * Number(packets));
  }

  /** Those of the packets that pass the filter, in the same order, a part at a time. */
  async function* passing(seqs: readonly number[], tenant: number, filter: PacketFilter): AsyncGenerator<number[]> {
    for (let start = 0; start < seqs.length; start += filteredAtOnce) {
      const part = seqs.slice(start, start + filteredAtOnce);
      const rows = await db
        .selectFrom(sql<{ value: number }>`json_each(${JSON.stringify(part)})`.as('part'))
        // A cross join makes SQLite go from the matches to their packets, not the other way round.
        .crossJoin('packets')
        .select('packets.seq')
        .where(sql<boolean>`packets.seq = part.value`)
        .where(matches(tenant, filter, { tagsPerPacket: true }) as never)
        .execute();
      const passed = new Set(rows.map(({ seq }) => seq));
      yield part.filter((seq) => passed.has(seq));
      await budget.pause();
    }
  }

  /** The phrases used for ranking: FTS5 reads every match of each, so a phrase with more matches than its share is left out. */
  async function rankingPhrases({ queries }: FullTextQuery): Promise<readonly string[]> {
    if (queries.length === 1) return queries;
    const share = Math.floor(limits.readPositions / queries.length);
    const kept: string[] = [];
    for (const phrase of queries) {
      if ((await countUpTo(database, share, matching(phrase))) <= share) kept.push(phrase);
      await budget.pause();
    }
    return kept;
  }

  async function ranked(search: FilteredQuery, { limit, offset }: Page, counted: number): Promise<RankedMatches | undefined> {
    const { tenant, filter, queries } = search;
    const ranking = await rankingPhrases(search);
    if (ranking.length === 0) return undefined;
    budget.allow(steps.rank * ranking.length * counted);
    let found = matching(allOf(ranking));
    // The plus sign keeps SQLite from running the ranking query once for each row of the other.
    if (ranking.length < queries.length)
      found = found.where(sql<boolean>`+search_index.rowid in (${matching(allOf(queries)).select('rowid')})`);
    // FTS5 can sort by rank only; ties come in the order of rows.
    const inOrder = found.select('search_index.rowid as seq').orderBy(sql`rank`);
    if (Object.keys(filter).length === 0)
      return { seqs: (await inOrder.limit(limit).offset(offset).execute()).map(({ seq }) => seq), total: counted };
    const all = await inOrder.execute();
    await budget.pause();
    const passed: number[] = [];
    for await (const part of passing(
      all.map(({ seq }) => seq),
      tenant,
      filter,
    ))
      passed.push(...part);
    return { seqs: passed.slice(offset, offset + limit), total: passed.length };
  }

  /** Scans the matches from the newest and keeps those that pass the filter. */
  async function newest({ tenant, queries, filter }: FilteredQuery, after: string, most: number): Promise<Newest> {
    const before = after === '' ? Number.MAX_SAFE_INTEGER : Number(after);
    const isFiltered = Object.keys(filter).length > 0;
    const length = isFiltered ? limits.scannedPackets : Math.min(limits.scannedPackets, most);
    const rows = await matching(allOf(queries))
      .select('search_index.rowid as seq')
      // FTS5 begins at this row only if it is an integer; numbers are bound as floating-point numbers.
      .where(sql<boolean>`search_index.rowid < cast(${before} as integer)`)
      .orderBy('search_index.rowid', 'desc')
      .limit(length)
      .execute();
    const scanned = rows.map(({ seq }) => seq);
    const found: number[] = [];
    if (!isFiltered) found.push(...scanned);
    else {
      await budget.pause();
      for await (const part of passing(scanned, tenant, filter)) {
        found.push(...part.slice(0, most - found.length));
        if (found.length >= most) break;
      }
    }
    return {
      found: found.map((seq) => ({ seq, sortKey: String(seq) })),
      end: scanned.length < length ? undefined : String(scanned.at(-1)),
    };
  }

  return {
    async plan({ tenant, phrases }) {
      const written: PhraseQuery[] = [];
      for (const phrase of phrases) written.push(await phraseQuery(phrase, tenant));
      await allowReading(tenant, written);
      return { tenant, queries: written.map(({ query }) => query), isCommon: false };
    },

    async countWord(tenant, word) {
      if (queryPrefix(word) !== undefined) return limits.readPositions + 1;
      return countUpTo(database, limits.readPositions, matching(`"${prefixOf(tenant)}${word}"`));
    },

    count: ({ queries }, most) => countUpTo(database, most, matching(allOf(queries))),

    ranked,
    newest,
  };
}
