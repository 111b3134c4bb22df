import { sql } from 'kysely';

import { readJson } from '../../kit/json.ts';
import { bound, type Database, type Session } from '../../kit/sql/dialect.ts';
import { type Searched, searchableText, searchableWords } from '../rules/words.ts';
import { wholeText } from './packets.ts';
import type { Tables } from './tables.ts';

/**
 * What stands before a tenant's words in the index. Every tenant has words of its own there, so that a search reads
 * nothing of another's and a word that is common elsewhere costs nothing here.
 */
export const prefixOf = (tenant: number) => `${tenant}_`;

/** Where PostgreSQL's positions end; words beyond it still count, all at this place. */
const lastPosition = 16_383;

/** PostgreSQL keeps at most this many positions of a word. */
const maxPositions = 255;

/** The packet's words as the database's index takes them. */
function indexText(database: Database<Tables>['name'], tenant: number, packet: Searched): string {
  const prefix = prefixOf(tenant);
  if (database === 'sqlite') return searchableText(packet, prefix);
  const positions = new Map<string, number[]>();
  for (const [index, word] of searchableWords(packet).entries()) {
    const at = positions.get(word);
    const position = Math.min(index + 1, lastPosition);
    if (at === undefined) positions.set(word, [position]);
    else if (at.length < maxPositions && at.at(-1) !== position) at.push(position);
  }
  return [...positions].map(([word, at]) => `'${prefix}${word}':${at.join(',')}`).join(' ');
}

/** A place in the queue, which is in the order of tenants and, within one, of packets. */
export interface Place {
  readonly tenant: number;
  readonly packet: number;
}

/** Which queued packets a step takes, and how many at most. */
export interface Stretch {
  /** Those behind this place; from the beginning if not given. */
  readonly after?: Place | undefined;
  /** Those up to this place; to the end if not given. */
  readonly upTo?: Place;
  readonly limit: number;
}

const beginning: Place = { tenant: 0, packet: 0 };
const ending: Place = { tenant: Number.MAX_SAFE_INTEGER, packet: Number.MAX_SAFE_INTEGER };

/** How many queued packets are read at once, and how many at first, while nothing is known of their size. */
const readSize = 100;
const firstRead = 8;

/**
 * About how many characters of packets one step takes, unless one packet alone has more: they are in memory, and nobody
 * else writes while their words are written.
 */
const maxStepLength = 2_000_000;

interface Prepared {
  key: { tenant: number; packet: number };
  revision: number;
  /** The packet's id; null when it is gone. */
  id: string | null;
  text: string;
}

/** What was put into the index. */
export interface Written {
  /** Packets that the database would not index; they are off the queue and can't be found. */
  readonly refused: readonly string[];
  /** The last packet that was taken. */
  readonly reached: Place | undefined;
}

/**
 * Writes the index behind the packets. `prepare` reads queued packets and makes their words; `write` puts those into
 * the index. A packet that has changed meanwhile goes in as it was read and stays queued, so that nobody waits for one
 * that never rests. Both belong to one caller at a time.
 */
export function createIndexer(database: Database<Tables>) {
  let prepared: Prepared[] = [];
  const queued = createQueueRead(database);

  return {
    /** Takes queued packets, in order: how many there were, and whether it left some of the stretch for another step. */
    async prepare({ after = beginning, upTo = ending, limit }: Stretch): Promise<{ taken: number; more: boolean }> {
      prepared = [];
      let place = after;
      let length = 0;
      let full = false;
      while (!full) {
        const fitting = prepared.length === 0 ? firstRead : Math.floor((maxStepLength - length) / (length / prepared.length));
        const size = Math.min(readSize, limit - prepared.length, Math.max(1, fitting));
        const rows = await queued(place, upTo, size);
        for (const { tenant, packet, revision, id, text: whole } of rows) {
          const text = whole === null ? '' : indexText(database.name, tenant, readJson(whole) as Searched);
          prepared.push({ key: { tenant, packet }, revision, id, text });
          length += whole?.length ?? 0;
        }
        if (rows.length < size) return { taken: prepared.length, more: false };
        place = prepared.at(-1)!.key;
        full = prepared.length >= limit || length >= maxStepLength;
      }
      return { taken: prepared.length, more: true };
    },

    /** Puts what was prepared into the index. When the database refuses a row, that packet alone stays out. */
    async write(): Promise<Written> {
      const rows = prepared;
      prepared = [];
      const reached = rows.at(-1)?.key;
      try {
        await writeRows(database, rows, true);
        return { refused: [], reached };
      } catch (error) {
        if (database.isUnavailable(error)) throw error;
      }
      const refused: string[] = [];
      for (const row of rows) {
        try {
          await writeRows(database, [row], true);
        } catch (error) {
          if (database.isUnavailable(error)) throw error;
          for (const { id } of await writeRows(database, [row], false)) if (id !== null) refused.push(id);
        }
      }
      return { refused, reached };
    },
  };
}

/** Reads a stretch of the queue with what of the packets is indexed. */
function createQueueRead(database: Database<Tables>) {
  const place = sql`(search_queue.tenant, search_queue.packet)`;
  const query = database.query<QueueParams, QueueRow>((db, params) =>
    db
      .selectFrom('search_queue')
      .leftJoin('packets', 'packets.seq', 'search_queue.packet')
      .leftJoin('contents', 'contents.packet', 'packets.seq')
      .select(['search_queue.tenant', 'search_queue.packet', 'search_queue.revision', 'packets.id', wholeText.as('text')])
      .where(sql<boolean>`${place} > (${params.after_tenant}, ${params.after_packet})`)
      .where(sql<boolean>`${place} <= (${params.last_tenant}, ${params.last_packet})`)
      .orderBy('search_queue.tenant')
      .orderBy('search_queue.packet')
      .limit(bound(params.limit)),
  );
  return (after: Place, upTo: Place, limit: number) =>
    query.all({
      after_tenant: after.tenant,
      after_packet: after.packet,
      last_tenant: upTo.tenant,
      last_packet: upTo.packet,
      limit,
    });
}

type QueueParams = { after_tenant: number; after_packet: number; last_tenant: number; last_packet: number; limit: number };

interface QueueRow {
  tenant: number;
  packet: number;
  revision: number;
  id: string | null;
  /** The whole packet; null when it is gone. */
  text: string | null;
}

/** Takes the rows into the index, if asked, and off the queue, where they have not changed; gives those it took off. */
async function writeRows(database: Database<Tables>, rows: readonly Prepared[], indexed: boolean): Promise<Prepared[]> {
  const write = async (session: Session) => {
    const queued = await session.find(
      'search_queue',
      ['tenant', 'packet', 'revision'],
      rows.map(({ key }) => key),
    );
    const revisions = new Map(queued.map(([, packet, revision]) => [packet, revision]));
    const current: Prepared[] = [];
    const changed: Prepared[] = [];
    for (const row of rows) {
      const revision = revisions.get(row.key.packet);
      if (revision === row.revision) current.push(row);
      // What changed since it was read stays queued and is read again; what is not there, somebody else settled.
      else if (revision !== undefined) changed.push(row);
    }
    // FTS5 begins a new piece of its index at every number that is lower than the one before: with many tenants in the
    // queue that would be most of them.
    const present = indexed
      ? [...current, ...changed].filter(({ id }) => id !== null).sort((one, other) => one.key.packet - other.key.packet)
      : [];
    const outdated = present.filter((row) => row.revision > 1 || changed.includes(row));
    await session.remove(
      'search_queue',
      current.map(({ key }) => key),
    );
    await session.remove(
      'search_index',
      outdated.map(({ key }) => ({ rowid: key.packet })),
    );
    await session.insert(
      'search_index',
      present.map(({ key, text }) => ({ rowid: key.packet, words: text })),
    );
    return current;
  };
  // A packet leaves the queue in the transaction that puts it into the index: if that is lost, both are as they were.
  return database.session(write, { asyncCommit: true });
}

/** Counting what waits to be indexed. */
export function createQueueReads(database: Database<Tables>) {
  return {
    /** How many packets wait to be indexed; counted no further than `most`. */
    async queued(most: number): Promise<number> {
      const some = database.longReads.selectFrom('search_queue').select('tenant').limit(most).as('some');
      return Number((await database.longReads.selectFrom(some).select(sql<number>`count(*)`.as('count')).executeTakeFirstOrThrow()).count);
    },

    /** Whether at least so many packets wait to be indexed: a short read, which waits for no other. */
    async isQueued(count: number): Promise<boolean> {
      const rows = await database.reads
        .selectFrom('search_queue')
        .select('tenant')
        .limit(1)
        .offset(count - 1)
        .execute();
      return rows.length > 0;
    },
  };
}
