import { type SqlBool, sql } from 'kysely';

import type { Database } from '../../kit/sql/dialect.ts';
import { beginningOf } from '../rules/words.ts';
import { matches, type PacketFilter } from './packets.ts';
import { prefixOf } from './search-index.ts';
import {
  countUpTo,
  type Filtered,
  type IndexQuery,
  type Matches,
  type MatchReads,
  type Newest,
  type Placed,
  type RankedPage,
  type SearchBounds,
  type Spelled,
} from './search-matches.ts';
import type { Tables } from './tables.ts';
import { sumOf } from './totals.ts';

/** How many packets a scan reads first; a few are enough for common words. */
const firstStep = 200;

/** A phrase as a full-text query. Every word is quoted. */
function spell(words: readonly string[], tenant: number): string {
  const spelled = words.map((word) => {
    const beginning = beginningOf(word);
    return `'${prefixOf(tenant)}${beginning ?? word}'${beginning === undefined ? '' : ':*'}`;
  });
  return `(${spelled.join(' <-> ')})`;
}

const allOf = (spelled: readonly string[]) => spelled.join(' & ');

/** The condition that the packet matches. `ts_match_vq` is the function of the `@@` operator; unlike that, it uses no index. */
function condition({ spelled, led }: Spelled) {
  const whole = sql`${allOf(spelled)}::tsquery`;
  return led === undefined
    ? sql<SqlBool>`search_index.words @@ ${whole}`
    : sql<SqlBool>`search_index.words @@ ${led}::tsquery and ts_match_vq(search_index.words, ${whole})`;
}

/** Searches PostgreSQL's full-text index. */
export function createPostgresMatches(database: Database<Tables>, bounds: SearchBounds): MatchReads {
  const { longReads: db } = database;

  function matching(search: Spelled, filter: PacketFilter): IndexQuery {
    const found: IndexQuery = db.selectFrom('search_index').where(condition(search));
    if (Object.keys(filter).length === 0) return found;
    return found
      .innerJoin('packets', 'packets.seq', 'search_index.rowid')
      .where(matches(search.tenant, filter, { ledTo: true }) as never) as unknown as IndexQuery;
  }

  /** The planner's estimate of the number of matches; words carry their tenant's prefix, and so do its statistics. */
  async function expected(search: Spelled): Promise<number> {
    const [row] = await db.selectFrom('search_index').select('rowid').where(condition(search)).explain('json');
    const [{ Plan: plan }] = row!['QUERY PLAN'] as [{ Plan: { 'Plan Rows': number } }];
    return plan['Plan Rows'];
  }

  /** Whether a sample of the newest packets suggests more than `most` matches. The planner's statistics are too inexact for prefixes. */
  async function areMany(search: Spelled, most: number): Promise<boolean> {
    const { sum } = await sumOf(db, search.tenant, 'packets:', 'packets:~').executeTakeFirstOrThrow();
    if (Number(sum) <= most) return false;
    const sample = await packetsBefore({ ...search, filter: {} }, '', firstStep);
    const matched = sample.filter(({ met }) => met === true).length;
    return (matched / sample.length) * Number(sum) > most;
  }

  /**
   * PostgreSQL collects all packets of every word, and of every word with a prefix, before it returns the first match, and
   * compares the positions of a phrase's words packet by packet. So a rare word drives the query where there is one, and
   * matches are not collected where every word is common.
   */
  async function plan({ tenant, phrases }: Matches): Promise<Spelled & { isCommon: boolean }> {
    const search = { tenant, spelled: phrases.map((phrase) => spell(phrase, tenant)) };
    const words = phrases.flat().filter((word) => beginningOf(word) === undefined);
    let least = Number.POSITIVE_INFINITY;
    for (const word of words) {
      const led = spell([word], tenant);
      const rows = await expected({ tenant, spelled: [led] });
      if (rows <= bounds.expected.phrases) return { ...search, led, isCommon: false };
      least = Math.min(least, rows);
    }
    const isPhrase = phrases.some(({ length }) => length > 1);
    if (words.length > 0 && (isPhrase || least > bounds.expected.words)) return { ...search, isCommon: true };
    const hasPrefix = words.length < phrases.flat().length;
    return { ...search, isCommon: hasPrefix && (await areMany(search, bounds.expected.phrases)) };
  }

  async function ranked(search: Filtered, page: RankedPage): Promise<number[] | undefined> {
    const found = matching(search, search.filter)
      .select('search_index.rowid')
      .orderBy(sql`-ts_rank(search_index.words, ${allOf(search.spelled)}::tsquery), search_index.rowid`)
      .limit(page.limit)
      .offset(page.offset);
    try {
      return (await found.execute()).map(({ rowid }) => Number(rowid));
    } catch (error) {
      if (!database.isTimeout(error)) throw error;
      return undefined;
    }
  }

  /** Scans the packets from the newest in growing steps and keeps those that match. */
  async function newest(search: Filtered, after: string, most: number): Promise<Newest> {
    // For a phrase PostgreSQL reads the positions of all words of a packet.
    const isPhrase = search.spelled.some((query) => query.includes('<->'));
    const lookedThrough = isPhrase ? bounds.readThrough : bounds.lookedThrough;
    const found: Placed[] = [];
    let place = after;
    let looked = 0;
    for (let step = firstStep; looked < lookedThrough; step *= 4) {
      step = Math.min(step, lookedThrough - looked);
      const rows = await packetsBefore(search, place, step).catch((error: unknown) => {
        if (!database.isTimeout(error) || looked === 0) throw error;
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

  /** The tenant's packets before an id that pass the filter, newest first, and whether each matches. */
  function packetsBefore({ tenant, filter, spelled }: Filtered, before: string, count: number) {
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
          .select(sql<boolean>`search_index.words @@ ${allOf(spelled)}::tsquery`.as('met'))
          .as('met'),
      )
      .orderBy('walked.id', 'desc')
      .execute();
  }

  return {
    plan,
    countWord: async () => 0,
    count: (search, filter, most) => countUpTo(database, most, matching(search, filter)),
    ranked,
    newest,
  };
}
