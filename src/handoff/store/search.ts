import { type Kysely, type SelectQueryBuilder, sql } from 'kysely';

import { nextTurn } from '../../kit/awaitable.ts';
import { readJson } from '../../kit/json.ts';
import { bound, type Database } from '../../kit/sql/dialect.ts';
import type { PacketSummary } from '../model/packet.ts';
import { type Searched, searchableTexts, snippetIn, snippetOf } from '../rules/words.ts';
import { matches, type PacketFilter } from './packets.ts';
import { prefixOf } from './search-index.ts';
import type { Tables } from './tables.ts';

/** What is searched for. */
export interface Search {
  /** The tenant's number. */
  readonly tenant: number;
  /** Runs of words, all of which must occur. */
  readonly phrases: readonly (readonly string[])[];
  readonly filter: PacketFilter;
  readonly limit: number;
  readonly offset: number;
}

/** A packet that a search found. */
export interface Found {
  /** The packet as lists show it, as JSON text. */
  readonly summary: string;
  /** The surroundings of the first place where a word stands. */
  readonly snippet: string;
}

/** What a search found, best match first, and how many packets match in all. */
export interface SearchResult {
  readonly rows: Found[];
  readonly total: number;
}

/** A packet among the best matches. */
interface Match {
  seq: number;
  state: string;
  digest: string;
  /** How many match in all. */
  matches: number;
}

type Params = { tenant: number; query: string; limit: number; offset: number };

/** How many contents are in memory at once. */
const contentsAtOnce = 4;

/** How many characters of packets are looked through for snippets in one go. */
const snippetCharacters = 256 * 1024;

/** All the phrases as a full-text query of the database's. Words are the tenant's own; every word is quoted. */
function queryOf(database: Database<Tables>['name'], tenant: number, phrases: Search['phrases']): string {
  const prefix = prefixOf(tenant);
  const own = phrases.map((phrase) => phrase.map((word) => prefix + word));
  return database === 'sqlite'
    ? own.map((phrase) => `"${phrase.join(' ')}"`).join(' AND ')
    : own.map((phrase) => `(${phrase.map((word) => `'${word}'`).join(' <-> ')})`).join(' & ');
}

/** A search in the database's own spelling: the condition, and the order of what meets it. */
function spelled(database: Database<Tables>['name'], query: string) {
  if (database === 'sqlite') {
    // FTS5 sorts by rank alone, and equals by row.
    return { condition: sql<boolean>`search_index match ${query}`, place: sql<number>`rank`, sorted: sql`rank` };
  }
  const place = sql<number>`-ts_rank(search_index.words, ${query}::tsquery)`;
  return {
    condition: sql<boolean>`search_index.words @@ ${query}::tsquery`,
    place,
    sorted: sql`${place}, search_index.rowid`,
  };
}

/** Searching the index. It may take long, so it runs where that holds up nobody. */
export function createSearcher(database: Database<Tables>) {
  const contentOf = database.query<{ tenant: number; seq: number }, { content: string }>(
    (db, { tenant, seq }) =>
      db
        .selectFrom('packets')
        .innerJoin('contents', 'contents.packet', 'packets.seq')
        .select('content')
        .where('packets.seq', '=', seq)
        .where('packets.tenant', '=', tenant),
    { long: true },
  );

  /** What matches. Words are the tenant's own, so without a filter the index alone can rank and count. */
  function matching(db: Kysely<Tables>, { tenant, query }: Pick<Params, 'tenant' | 'query'>, filter: PacketFilter) {
    const found = db.selectFrom('search_index').where(spelled(database.name, query).condition);
    if (Object.keys(filter).length === 0) return found;
    return found
      .innerJoin('packets', 'packets.seq', 'search_index.rowid')
      .where(matches(tenant, filter) as never) as unknown as typeof found;
  }

  const countOf = (found: SelectQueryBuilder<Tables, 'search_index', unknown>) => found.select(sql<number>`count(*)`.as('count'));

  /** The packets of the best matches, in their order. */
  function best(db: Kysely<Tables>, params: Params, filter: PacketFilter, isPhrase: boolean) {
    const { place, sorted } = spelled(database.name, params.query);
    // A phrase is dear to look for, so it is counted where it is found; words are counted faster by themselves.
    const rows = matching(db, params, filter)
      .select(['search_index.rowid', place.as('place'), (isPhrase ? sql<number>`count(*) over ()` : sql<number>`0`).as('matches')])
      .orderBy(sorted)
      .limit(bound(params.limit))
      .offset(bound(params.offset));
    return (
      db
        // Crossed, so that SQLite goes from the few best to their packets and not the other way round.
        .selectFrom(rows.as('best'))
        .crossJoin('packets')
        .select(['packets.seq', 'packets.state', 'packets.digest'])
        .select(isPhrase ? 'best.matches' : countOf(matching(db, params, filter)).as('matches'))
        .where('packets.tenant', '=', params.tenant)
        .whereRef('packets.seq', '=', 'best.rowid')
        .orderBy('best.place')
        .orderBy('best.rowid')
    );
  }

  const bestWords = database.query<Params, Match>((db, params) => best(db, params, {}, false) as never, { long: true });
  const bestPhrases = database.query<Params, Match>((db, params) => best(db, params, {}, true) as never, { long: true });

  /** The packets with their snippets. What a summary tells already needs no content. */
  async function shown(tenant: number, found: readonly Match[], phrases: Search['phrases']): Promise<Found[]> {
    const snippets: (string | undefined)[] = [];
    let read = 0;
    // Large packets take a while to look through: others get their turn in between.
    const rest = async (length: number) => {
      read += length;
      if (read < snippetCharacters) return;
      read = 0;
      await nextTurn();
    };
    for (const { digest } of found) {
      snippets.push(snippetIn((readJson(`{${digest}`) as PacketSummary).context.summary, phrases));
      await rest(digest.length);
    }
    const without = [...found.keys()].filter((index) => snippets[index] === undefined);
    for (let first = 0; first < without.length; first += contentsAtOnce) {
      const some = without.slice(first, first + contentsAtOnce);
      const contents = await Promise.all(some.map((index) => contentOf.first({ tenant, seq: found[index]!.seq })));
      for (const [place, index] of some.entries()) {
        // Without its content it was removed since it was found.
        const content = contents[place]?.content;
        snippets[index] = content === undefined ? '' : snippetOf(searchableTexts(readJson(`{${content}`) as Searched), phrases);
        await rest(content?.length ?? 0);
      }
    }
    return found.map(({ state, digest }, index) => ({ summary: state + digest, snippet: snippets[index]! }));
  }

  return {
    async search({ tenant, phrases, filter, limit, offset }: Search): Promise<SearchResult> {
      const params = { tenant, query: queryOf(database.name, tenant, phrases), limit, offset };
      const isPhrase = phrases.some(({ length }) => length > 1);
      const found =
        Object.keys(filter).length === 0
          ? await (isPhrase ? bestPhrases : bestWords).all(params)
          : ((await best(database.longReads, params, filter, isPhrase).execute()) as Match[]);
      const [first] = found;
      if (first !== undefined) return { rows: await shown(tenant, found, phrases), total: Number(first.matches) };
      // Behind the last page no row tells how many there are.
      const { count } = await countOf(matching(database.longReads, params, filter)).executeTakeFirstOrThrow();
      return { rows: [], total: Number(count) };
    },
  };
}
