import { sql } from 'kysely';

import { readJson } from '../../kit/json.ts';
import type { Database } from '../../kit/sql/dialect.ts';
import type { Packet } from '../model/packet.ts';
import { searchableWords } from '../rules/words.ts';
import { matches, type PacketFilter, shortText } from './packets.ts';
import type { Tables } from './tables.ts';

/** A packet that a search found. */
export interface Found {
  /** The packet as lists show it, as JSON text. */
  summary: string;
  /** Its content, as the JSON text of an object. */
  content: string;
}

/**
 * A tenant's word in the index. Every tenant has words of its own there, so that a search reads nothing of another's
 * and a word that is common elsewhere costs nothing here.
 */
const ownWord = (tenantNumber: number, word: string) => `${tenantNumber}_${word}`;

/** Where PostgreSQL's positions end; words beyond it still count, all at this place. */
const lastPosition = 16_383;

/** PostgreSQL keeps at most this many positions of a word. */
const maxPositions = 255;

/** The words as the database's index takes them. */
function indexText(database: Database<Tables>['name'], words: readonly string[]): string {
  if (database === 'sqlite') return words.join(' ');
  const positions = new Map<string, number[]>();
  for (const [index, word] of words.entries()) {
    const at = positions.get(word);
    const position = Math.min(index + 1, lastPosition);
    if (at === undefined) positions.set(word, [position]);
    else if (at.length < maxPositions && at.at(-1) !== position) at.push(position);
  }
  return [...positions].map(([word, at]) => `'${word}':${at.join(',')}`).join(' ');
}

interface Prepared {
  tenant_id: string;
  packet_id: string;
  revision: number;
  /** Null when the packet is gone. */
  seq: number | null;
  text: string;
}

/**
 * Writes the index behind the packets. `prepare` reads queued packets and makes their words; `write` puts those into
 * the index that have not changed since. Both belong to one caller at a time.
 */
export function createIndexer(database: Database<Tables>) {
  let prepared: Prepared[] = [];

  return {
    /** Takes up to `limit` queued packets, oldest first, of one tenant or of all; how many there were. */
    async prepare({ tenantId, limit }: { tenantId?: string; limit: number }): Promise<number> {
      let query = database.reads
        .selectFrom('search_queue')
        .innerJoin('tenants', 'tenants.id', 'search_queue.tenant_id')
        .leftJoin('packets', (join) =>
          join.onRef('packets.tenant_id', '=', 'search_queue.tenant_id').onRef('packets.id', '=', 'search_queue.packet_id'),
        )
        .leftJoin('contents', (join) =>
          join.onRef('contents.tenant_id', '=', 'search_queue.tenant_id').onRef('contents.packet_id', '=', 'search_queue.packet_id'),
        )
        .select([
          'search_queue.tenant_id',
          'search_queue.packet_id',
          'search_queue.revision',
          'tenants.number',
          'packets.seq',
          'contents.content',
        ]);
      if (tenantId !== undefined) query = query.where('search_queue.tenant_id', '=', tenantId);
      const rows = await query.orderBy('search_queue.tenant_id').orderBy('search_queue.packet_id').limit(limit).execute();
      prepared = rows.map(({ tenant_id, packet_id, revision, number, seq, content }) => {
        const words = content === null ? [] : searchableWords(readJson(`{${content}}`) as Packet);
        return {
          tenant_id,
          packet_id,
          revision,
          seq,
          text: indexText(
            database.name,
            words.map((word) => ownWord(number, word)),
          ),
        };
      });
      return prepared.length;
    },

    /** Puts what was prepared into the index. When the database refuses a row, that packet alone stays out. */
    async write(): Promise<{ settled: string[]; refused: string[] }> {
      const rows = prepared;
      prepared = [];
      try {
        return { settled: await writeRows(database, rows, true), refused: [] };
      } catch (error) {
        if (database.isUnavailable(error)) throw error;
      }
      const settled: string[] = [];
      const refused: string[] = [];
      for (const row of rows) {
        try {
          settled.push(...(await writeRows(database, [row], true)));
        } catch (error) {
          if (database.isUnavailable(error)) throw error;
          refused.push(...(await writeRows(database, [row], false)));
        }
      }
      return { settled, refused };
    },
  };
}

/** Takes the rows off the queue and, if asked, into the index; gives the packets that had not changed since they were read. */
async function writeRows(database: Database<Tables>, rows: readonly Prepared[], indexed: boolean): Promise<string[]> {
  return database.session(async (session) => {
    const keys = rows.map(({ tenant_id, packet_id }) => ({ tenant_id, packet_id }));
    const queued = await session.find('search_queue', ['tenant_id', 'packet_id', 'revision'], keys);
    const revisions = new Map(queued.map(([tenant, id, revision]) => [`${tenant} ${id}`, revision]));
    // What changed again since it was read stays queued and is read again.
    const current = rows.filter((row) => revisions.get(`${row.tenant_id} ${row.packet_id}`) === row.revision);
    const present = indexed ? current.filter((row) => row.seq !== null) : [];
    const offQueue = current.map(({ tenant_id, packet_id }) => ({ tenant_id, packet_id }));
    const outdated = present.filter(({ revision }) => revision > 1).map(({ seq }) => ({ rowid: seq }));
    const entries = present.map(({ seq, text }) => ({ rowid: seq, words: text }));
    await session.remove('search_queue', offQueue);
    await session.remove('search_index', outdated);
    await session.insert('search_index', entries);
    return current.map(({ packet_id }) => packet_id);
  });
}

/** Reading the index. */
export function createSearchReads(database: Database<Tables>) {
  const tenantNumber = database.query<{ id: string }, { number: number }>((db, { id }) =>
    db.selectFrom('tenants').select('number').where('id', '=', id),
  );

  /** The condition that a packet has all the phrases, in the database's own spelling; every word is quoted. */
  function found(number: number, phrases: readonly (readonly string[])[]) {
    const own = phrases.map((phrase) => phrase.map((word) => ownWord(number, word)));
    if (database.name === 'sqlite') {
      const query = own.map((phrase) => `"${phrase.join(' ')}"`).join(' AND ');
      return { condition: sql<boolean>`search_index match ${query}`, rank: sql`rank` };
    }
    const query = own.map((phrase) => `(${phrase.map((word) => `'${word}'`).join(' <-> ')})`).join(' & ');
    return {
      condition: sql<boolean>`search_index.words @@ ${query}::tsquery`,
      rank: sql`ts_rank(search_index.words, ${query}::tsquery) desc, search_index.rowid desc`,
    };
  }

  return {
    /** How many packets wait to be indexed; counted no further than `most`. */
    async queued(most: number): Promise<number> {
      const some = database.reads.selectFrom('search_queue').select('tenant_id').limit(most).as('some');
      return Number((await database.reads.selectFrom(some).select(sql<number>`count(*)`.as('count')).executeTakeFirstOrThrow()).count);
    },

    /** The packets that have all the phrases, best match first, and how many they are. */
    async search(
      tenantId: string,
      phrases: readonly (readonly string[])[],
      filter: PacketFilter,
      { limit, offset }: { limit: number; offset: number },
    ): Promise<{ rows: Found[]; total: number }> {
      const tenant = await tenantNumber.first({ id: tenantId });
      if (tenant === undefined) return { rows: [], total: 0 };
      const { condition, rank } = found(tenant.number, phrases);
      const page = database.longReads
        .selectFrom('search_index')
        .innerJoin('packets', 'packets.seq', 'search_index.rowid')
        .innerJoin('contents', (join) =>
          join.onRef('contents.tenant_id', '=', 'packets.tenant_id').onRef('contents.packet_id', '=', 'packets.id'),
        )
        .select([shortText.as('summary'), sql<string>`'{' || contents.content || '}'`.as('content')])
        .where(condition)
        .where(matches(tenantId, filter) as never)
        .orderBy(rank)
        .limit(limit)
        .offset(offset);
      // Words are the tenant's own, so without a filter the index alone can count.
      const everything = Object.keys(filter).length === 0;
      const count = everything
        ? database.longReads.selectFrom('search_index').select(sql<number>`count(*)`.as('count')).where(condition)
        : database.longReads
            .selectFrom('search_index')
            .innerJoin('packets', 'packets.seq', 'search_index.rowid')
            .select(sql<number>`count(*)`.as('count'))
            .where(condition)
            .where(matches(tenantId, filter) as never);
      const [rows, counted] = await Promise.all([page.execute(), count.executeTakeFirstOrThrow()]);
      return { rows, total: Number(counted.count) };
    },
  };
}
