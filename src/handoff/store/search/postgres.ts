import { type SqlBool, sql } from 'kysely';

import type { Database } from '../../../kit/sql/dialect.ts';
import { queryPrefix } from '../../rules/tokenizer.ts';
import { matches, type PacketFilter } from '../packet-filter.ts';
import type { Page } from '../page-size.ts';
import type { Tables } from '../tables.ts';
import { sumOf } from '../totals.ts';
import { prefixOf } from './indexer.ts';
import {
  countUpTo,
  type FilteredQuery,
  type FoundMatch,
  type FullTextQuery,
  type IndexQuery,
  type MatchReads,
  type Newest,
  type Phrase,
  type RankedMatches,
  type SearchLimits,
  type SearchTerms,
} from './matches.ts';

/** How many packets a scan reads first; a few are enough for common words. */
const firstStep = 200;

/** A phrase as a full-text query. Every word is quoted. */
function phraseQuery(words: Phrase, tenant: number): string {
  const quoted = words.map((word) => {
    const beginning = queryPrefix(word);
    return `'${prefixOf(tenant)}${beginning ?? word}'${beginning === undefined ? '' : ':*'}`;
  });
  return `(${quoted.join(' <-> ')})`;
}

const allOf = (queries: readonly string[]) => queries.join(' & ');

/** The condition that the packet matches. `ts_match_vq` is the function of the `@@` operator; unlike that, it uses no index. */
function condition({ queries, rareWord }: FullTextQuery) {
  const whole = sql`${allOf(queries)}::tsquery`;
  return rareWord === undefined
    ? sql<SqlBool>`search_index.words @@ ${whole}`
    : sql<SqlBool>`search_index.words @@ ${rareWord}::tsquery and ts_match_vq(search_index.words, ${whole})`;
}

/** Searches PostgreSQL's full-text index. */
export function createPostgresMatches(database: Database<Tables>, limits: SearchLimits): MatchReads {
  const { longReads: db } = database;

  /** The rows that match. Words name their tenant. */
  const matchesOf = (search: FullTextQuery) => db.selectFrom('search_index').where(condition(search));

  function matching(search: FullTextQuery, filter: PacketFilter): IndexQuery {
    const found: IndexQuery = matchesOf(search);
    if (Object.keys(filter).length === 0) return found;
    return found
      .innerJoin('packets', (join) =>
        join.onRef('packets.tenant', '=', 'search_index.tenant').onRef('packets.seq', '=', 'search_index.rowid'),
      )
      .where(matches(search.tenant, filter, { tagsPerPacket: true }) as never) as unknown as IndexQuery;
  }

  /** The planner's estimate of the number of matches; words carry their tenant's prefix, and so do its statistics. */
  async function expected(search: FullTextQuery): Promise<number> {
    const [row] = await matchesOf(search).select('rowid').explain('json');
    const [{ Plan: plan }] = row!['QUERY PLAN'] as [{ Plan: { 'Plan Rows': number } }];
    return plan['Plan Rows'];
  }

  /** Whether a sample of the newest packets suggests more than `most` matches. The planner's statistics are too inexact for prefixes. */
  async function areMany(search: FullTextQuery, most: number): Promise<boolean> {
    const { sum } = await sumOf(db, search.tenant, 'packets:', 'packets:~').executeTakeFirstOrThrow();
    if (Number(sum) <= most) return false;
    const sample = await packetsBefore({ ...search, filter: {} }, '', firstStep);
    const matched = sample.filter(({ isMatch }) => isMatch === true).length;
    return (matched / sample.length) * Number(sum) > most;
  }

  /**
   * PostgreSQL collects all packets of every word, and of every word with a prefix, before it returns the first match, and
   * compares the positions of a phrase's words packet by packet. So a rare word drives the query where there is one, and
   * matches are not collected where every word is common.
   */
  async function plan({ tenant, phrases }: SearchTerms): Promise<FullTextQuery & { isCommon: boolean }> {
    const search = { tenant, queries: phrases.map((phrase) => phraseQuery(phrase, tenant)) };
    const words = phrases.flat().filter((word) => queryPrefix(word) === undefined);
    for (const word of words) {
      const rareWord = phraseQuery([word], tenant);
      const rows = await expected({ tenant, queries: [rareWord] });
      if (rows <= limits.expected) return { ...search, rareWord, isCommon: false };
    }
    return { ...search, isCommon: words.length > 0 || (await areMany(search, limits.expected)) };
  }

  async function ranked(search: FilteredQuery, page: Page, counted: number): Promise<RankedMatches | undefined> {
    const found = matching(search, search.filter)
      .select('search_index.rowid')
      .orderBy(sql`-ts_rank(search_index.words, ${allOf(search.queries)}::tsquery), search_index.rowid`)
      .limit(page.limit)
      .offset(page.offset);
    try {
      const seqs = (await found.execute()).map(({ rowid }) => Number(rowid));
      const isFiltered = Object.keys(search.filter).length > 0;
      return { seqs, total: isFiltered ? await countUpTo(database, limits.counted, matching(search, search.filter)) : counted };
    } catch (error) {
      if (!database.isTimeout(error)) throw error;
      return undefined;
    }
  }

  /** Scans the packets from the newest in growing steps and keeps those that match. */
  async function newest(search: FilteredQuery, after: string, most: number): Promise<Newest> {
    // For a phrase PostgreSQL reads the positions of all words of a packet.
    const isPhrase = search.queries.some((query) => query.includes('<->'));
    const scannedPackets = isPhrase ? limits.scannedTexts : limits.scannedPackets;
    const found: FoundMatch[] = [];
    let before = after;
    let scannedSoFar = 0;
    for (let step = firstStep; scannedSoFar < scannedPackets; step *= 4) {
      step = Math.min(step, scannedPackets - scannedSoFar);
      const rows = await packetsBefore(search, before, step).catch((error: unknown) => {
        if (!database.isTimeout(error) || scannedSoFar === 0) throw error;
        return undefined;
      });
      if (rows === undefined) return { found, end: before };
      for (const { seq, id, isMatch } of rows) if (isMatch === true && found.length < most) found.push({ seq: Number(seq), sortKey: id });
      scannedSoFar += rows.length;
      if (rows.length < step) return { found, end: undefined };
      before = rows.at(-1)!.id;
      if (found.length >= most) break;
    }
    return { found, end: before };
  }

  /** The tenant's packets before an id that pass the filter, newest first, and whether each matches. */
  function packetsBefore({ tenant, filter, queries }: FilteredQuery, before: string, count: number) {
    const scanned = db
      .selectFrom('packets')
      .select(['packets.seq', 'packets.id'])
      .where(matches(tenant, filter) as never)
      .$if(before !== '', (rest) => rest.where('packets.id', '<', before))
      .orderBy('packets.id', 'desc')
      .limit(count);
    return db
      .selectFrom(scanned.as('scanned'))
      .select(['scanned.seq', 'scanned.id'])
      .select((eb) =>
        eb
          .selectFrom('search_index')
          .where('search_index.tenant', '=', tenant)
          .whereRef('search_index.rowid', '=', 'scanned.seq')
          .select(sql<boolean>`search_index.words @@ ${allOf(queries)}::tsquery`.as('isMatch'))
          .as('isMatch'),
      )
      .orderBy('scanned.id', 'desc')
      .execute();
  }

  return {
    plan,
    countWord: async () => 0,
    count: (search, most) => countUpTo(database, most, matching(search, {})),
    ranked,
    newest,
  };
}
