import { type SqlBool, sql } from 'kysely';

import { readJson } from '../../../kit/json.ts';
import type { Database } from '../../../kit/sql/dialect.ts';
import type { PacketSummary } from '../../model/packet.ts';
import { type Searched, searchableTexts, snippetIn, snippetOf } from '../../rules/tokenizer.ts';
import type { PacketFilter } from '../packet-filter.ts';
import { ofPacket, shortText, wholeText } from '../packet-texts.ts';
import { maxPageBytes, type Page } from '../page-size.ts';
import type { Tables } from '../tables.ts';
import { Budget, OverBudget } from './budget.ts';
import { type FullTextQuery, type Phrase, type SearchTerms, searchLimits } from './matches.ts';
import { createPostgresMatches } from './postgres.ts';
import { createSqliteMatches } from './sqlite.ts';
import { createTextSearch } from './texts.ts';

/** Where a page of matches begins, and in which order. */
export type SearchStart =
  | { readonly order: 'rank'; readonly shown: number }
  /** `after`: the position of the last match before the page; `skip`: how many matches after it to skip. */
  | { readonly order: 'newest'; readonly shown: number; readonly after: string; readonly skip: number };

/** A search request. */
export interface Search extends SearchTerms, Page {
  readonly filter: PacketFilter;
  /** Where the previous page ended; used instead of `offset`. */
  readonly from?: SearchStart | undefined;
}

/** A packet that a search found. */
export interface Found {
  /** The packet's summary, as lists show it, as JSON text. */
  readonly summary: string;
  /** The text around the first occurrence of a word. */
  readonly snippet: string;
}

/** A page of search results. */
export interface SearchPage {
  readonly rows: readonly Found[];
  readonly order: 'rank' | 'newest';
  readonly total: number;
  /** Whether `total` is exact or a lower bound. */
  readonly total_is: 'exact' | 'at_least';
  /** Where the next page begins; undefined when there is none. */
  readonly next: SearchStart | undefined;
}

/**
 * A page, or why there is none. `fitting`: the packets are too large together, and only this many fit; `outgrown`: the
 * matches have become too many to rank; `overBudget`: the search exceeds its budget.
 */
export type SearchResult = SearchPage | { readonly fitting: number } | { readonly outgrown: true } | { readonly overBudget: true };

/** A page with its packets as JSON in UTF-8, joined by commas, so that the main thread has nothing to join or encode. */
export interface EncodedPage extends Omit<SearchPage, 'rows'> {
  readonly packets: Uint8Array;
}

export type EncodedResult = EncodedPage | Exclude<SearchResult, SearchPage>;

/** Encodes the packets of a result, each with its snippet. */
export function encoded(result: SearchResult): EncodedResult {
  if (!('rows' in result)) return result;
  const { rows, ...page } = result;
  const packets = rows.map(({ summary, snippet }) => `${summary.slice(0, -1)},"snippet":${JSON.stringify(snippet)}}`);
  return { ...page, packets: Buffer.from(packets.join(',')) };
}

/** The most bytes of packets that are read for a page's snippets. Further packets show the beginning of their summary. */
const snippetBytes = 2 * 1024 * 1024;

/** How many of them are read before other requests run. */
const snippetBytesAtOnce = 256 * 1024;

/** A search with its full-text query; `textPhrases` are looked up in the packets' texts. */
type PlannedSearch = Search & FullTextQuery & { readonly textPhrases: readonly Phrase[] };

/** A page's matches, before their texts are read. */
interface Listed extends Omit<SearchPage, 'rows' | 'next'> {
  readonly seqs: readonly number[];
  /** Where the next page begins after the first `count` matches of this one; undefined when none are left. */
  nextAfter(count: number): SearchStart | undefined;
}

/** Searches the index. A search may take long, so it runs on a worker thread where there is one, and pauses between its statements. */
export function createSearcher(database: Database<Tables>, limits = searchLimits(database.name), budget: Budget = new Budget()) {
  const matches = (database.name === 'sqlite' ? createSqliteMatches : createPostgresMatches)(database, limits, budget);

  /** The condition that a packet is one of these. The plus sign keeps SQLite from scanning all packets of the tenant. */
  const among = (tenant: number, seqs: readonly number[]) =>
    database.name === 'sqlite'
      ? sql<SqlBool>`+packets.tenant = ${tenant} and packets.seq in (select value from json_each(${JSON.stringify(seqs)}))`
      : sql<SqlBool>`packets.tenant = ${tenant} and packets.seq = any(${seqs}::bigint[])`;

  const sizesOf = (tenant: number, seqs: readonly number[]) =>
    database.longReads
      .selectFrom('packets')
      .innerJoin('contents', ofPacket)
      .select('packets.seq')
      .select(sql<number>`octet_length(packets.state) + octet_length(packets.digest)`.as('bytes'))
      .select(sql<number>`octet_length(packets.state) + octet_length(contents.content)`.as('whole'))
      .where(among(tenant, seqs))
      .execute();

  const textsOf = (tenant: number, seqs: readonly number[], { whole }: { whole: boolean }) => {
    const packets = database.longReads.selectFrom('packets').where(among(tenant, seqs));
    return whole
      ? packets
          .innerJoin('contents', ofPacket)
          .select(['packets.seq', wholeText.as('text')])
          .execute()
      : packets.select(['packets.seq', shortText.as('text')]).execute();
  };

  const texts = createTextSearch({ matches, limits, budget, sizesOf, textsOf: (tenant, seqs) => textsOf(tenant, seqs, { whole: true }) });

  /** The matches in rank order; undefined when they can't be ranked. */
  async function ranked(search: PlannedSearch, counted: number): Promise<Listed | undefined> {
    const { from, offset, limit } = search;
    const shown = from?.shown ?? offset;
    const page = counted === 0 ? { seqs: [], total: 0 } : await matches.ranked(search, { limit, offset: shown }, counted);
    if (page === undefined) return undefined;
    const { seqs, total } = page;
    return {
      seqs,
      order: 'rank',
      total,
      total_is: 'exact',
      nextAfter: (count) => (count > 0 && shown + count < total ? { order: 'rank', shown: shown + count } : undefined),
    };
  }

  /**
   * The newest matches. Each page scans a bounded range: it may end early, and `next` continues.
   * @param counted the number of matches; undefined where they can't be counted
   */
  async function newest(search: PlannedSearch, counted: number | undefined): Promise<Listed> {
    const { from, offset, limit, filter, textPhrases } = search;
    const start = from?.order === 'newest' ? from : { shown: offset, after: '', skip: offset };
    const most = start.skip + limit + 1;
    const { found, end } = await (textPhrases.length === 0
      ? matches.newest(search, start.after, most)
      : texts.newest(search, textPhrases, start.after, most));
    const rows = found.slice(start.skip, start.skip + limit);
    const isWhole = end === undefined && found.length <= start.skip + limit;
    const known = Object.keys(filter).length === 0 ? counted : undefined;
    const seen = start.shown - start.skip + found.length;
    const total = known === undefined ? seen : Math.min(known, limits.counted);
    const nextAfter = (count: number): SearchStart | undefined => {
      const shown = start.shown + count;
      if (count > 0 && start.skip + count < found.length) return { order: 'newest', shown, after: rows[count - 1]!.sortKey, skip: 0 };
      return end === undefined ? undefined : { order: 'newest', shown, after: end, skip: Math.max(0, start.skip - found.length) };
    };
    return {
      seqs: rows.map(({ seq }) => seq),
      order: 'newest',
      total,
      total_is: (known === undefined ? isWhole : known <= limits.counted) ? 'exact' : 'at_least',
      nextAfter,
    };
  }

  async function list(wanted: Search): Promise<Listed | { outgrown: true }> {
    const { from, filter } = wanted;
    const { phrases, textPhrases } = await texts.splitPhrases(wanted);
    const { isCommon, ...query } = await matches.plan({ ...wanted, phrases });
    const search = { ...wanted, ...query, textPhrases };
    if (textPhrases.length > 0 || isCommon) return from?.order === 'rank' ? { outgrown: true } : newest(search, undefined);
    const isFiltered = Object.keys(filter).length > 0;
    const mostRanked = isFiltered ? limits.scannedPackets : limits.ranked;
    // With a filter this count only decides whether the matches are ranked.
    const counted = await matches.count(search, isFiltered && from?.order !== 'rank' ? mostRanked : limits.counted);
    await budget.pause();
    // A client that pages through ranked matches may continue, even if there are a few more matches by now.
    if (from?.order === 'rank' && counted > limits.counted) return { outgrown: true };
    const isRanked = from === undefined ? counted <= mostRanked : from.order === 'rank';
    return (isRanked ? await ranked(search, counted) : undefined) ?? (await newest(search, counted));
  }

  /** The snippet from the first text of the packet that contains a phrase. */
  async function snippetWithin(packet: Searched, phrases: readonly Phrase[], signal?: AbortSignal): Promise<string | undefined> {
    let seen = 0;
    for (const text of searchableTexts(packet)) {
      const snippet = snippetIn(text, phrases);
      if (snippet !== undefined) return snippet;
      seen += text.length;
      if (seen < snippetBytesAtOnce) continue;
      seen = 0;
      await budget.pause();
      signal?.throwIfAborted();
    }
    return undefined;
  }

  /** The packets with their snippets. A packet's content is read only if its summary has no match. */
  async function withSnippets({ tenant, phrases }: SearchTerms, sizes: readonly { seq: number; whole: number }[], signal?: AbortSignal) {
    const seqs = sizes.map(({ seq }) => seq);
    const summaries = new Map((await textsOf(tenant, seqs, { whole: false })).map(({ seq, text }) => [Number(seq), text]));
    const rows: Found[] = [];
    let left = snippetBytes;
    let read = 0;
    for (const { seq, whole } of sizes) {
      const summary = summaries.get(seq);
      // A packet without a summary was deleted since it was found.
      if (summary === undefined) continue;
      const { context } = readJson(summary) as PacketSummary;
      let snippet = snippetIn(context.summary, phrases);
      read += summary.length;
      if (snippet === undefined && whole <= left) {
        const [packet] = await textsOf(tenant, [seq], { whole: true });
        left -= whole;
        read += whole;
        snippet = packet === undefined ? undefined : await snippetWithin(readJson(packet.text) as Searched, phrases, signal);
      }
      rows.push({ summary, snippet: snippet ?? snippetOf([context.summary], []) });
      // Scanning large packets takes a while; other requests run in between.
      if (read < snippetBytesAtOnce) continue;
      read = 0;
      await budget.pause();
      signal?.throwIfAborted();
    }
    return rows;
  }

  async function pageOf(search: Search, signal?: AbortSignal): Promise<SearchResult> {
    const listed = await list(search);
    if ('outgrown' in listed) return listed;
    signal?.throwIfAborted();
    const found = new Map((await sizesOf(search.tenant, listed.seqs)).map((row) => [Number(row.seq), row]));
    const fitting: { seq: number; whole: number }[] = [];
    let bytes = 0;
    let count = 0;
    for (const seq of listed.seqs) {
      const row = found.get(seq);
      bytes += Number(row?.bytes ?? 0);
      if (bytes > maxPageBytes && fitting.length > 0) break;
      count += 1;
      if (row !== undefined) fitting.push({ seq, whole: Number(row.whole) });
    }
    if (count < listed.seqs.length && search.from === undefined && search.offset > 0) return { fitting: count };
    await budget.pause();
    const { order, total, total_is } = listed;
    return { rows: await withSnippets(search, fitting, signal), order, total, total_is, next: listed.nextAfter(count) };
  }

  return {
    /** `signal`: aborted when the caller's connection closes. */
    async search(search: Search, signal?: AbortSignal): Promise<SearchResult> {
      try {
        return await pageOf(search, signal);
      } catch (error) {
        if (error instanceof OverBudget) return { overBudget: true };
        throw error;
      }
    },
  };
}
