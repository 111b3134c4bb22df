import { type Kysely, sql } from 'kysely';

import { readJson } from '../../../kit/json.ts';
import { countOf } from '../../../kit/sql/count.ts';
import type { Database } from '../../../kit/sql/dialect.ts';
import { type Searched, searchableText, searchableWords } from '../../rules/tokenizer.ts';
import { inSession } from '../engine/in-session.ts';
import type { Session } from '../engine/session.ts';
import { ofPacket, wholeText } from '../packet-texts.ts';
import type { RowOf, Tables } from '../tables.ts';
import { indexKey } from './index-key.ts';

declare module '../tables.ts' {
  interface Tables {
    search_queue: { tenant: number; packet: number; revision: number };
    /** The full-text index: on PostgreSQL a tsvector column; on SQLite an FTS5 table without the tenant. `rowid` is the packet's `seq`. */
    search_index: { tenant: number; rowid: number; words: string };
  }
}

/**
 * The prefix of a tenant's words in the index. Each tenant has its own words there, so that a search reads nothing of other
 * tenants, and words that are common elsewhere cost nothing.
 */
export const prefixOf = (tenant: number) => `${tenant}_`;

/** The highest position in a PostgreSQL tsvector; all later words get this position. */
const lastPosition = 16_383;

/** PostgreSQL stores at most this many positions of a word. */
const maxPositions = 255;

/** The packet's words in the format of the database's index. */
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

/** A position in the queue, which is ordered by tenant, then by packet. */
export interface QueuePosition {
  readonly tenant: number;
  readonly packet: number;
}

/**
 * How many queued packets one step takes. A larger step costs less per packet, but blocks all other writes on SQLite
 * while it is written (about 5 ms).
 */
const stepSize = 400;

/** Which queued packets a step takes. */
export interface Range {
  /** Only packets after this position; default: from the beginning. */
  readonly after?: QueuePosition | undefined;
  /** Only packets up to this position; default: to the end. */
  readonly upTo?: QueuePosition;
  readonly limit?: number;
}

const beginning: QueuePosition = { tenant: 0, packet: 0 };
const ending: QueuePosition = { tenant: Number.MAX_SAFE_INTEGER, packet: Number.MAX_SAFE_INTEGER };

/** How many queued packets one query reads, and how many the first one reads, before their size is known. */
const readSize = 100;
const firstRead = 8;

/**
 * About how many characters of packets one step takes, unless a single packet has more: they are held in memory, and
 * writing their words blocks other writes.
 */
const maxStepLength = 2_000_000;

interface Prepared {
  key: { tenant: number; packet: number };
  revision: number;
  /** The packet's id; null when it was deleted. */
  id: string | null;
  text: string;
}

/** The result of writing to the index. */
export interface Written {
  /** Packets that the database refused to index; they have left the queue and searches don't find them. */
  readonly refused: readonly string[];
  /** The last packet that was processed. */
  readonly reached: QueuePosition | undefined;
}

/**
 * Updates the index asynchronously. `prepare` reads queued packets and extracts their words; `write` writes those to the
 * index. A packet that changed in between is indexed as it was read and stays queued, so that a packet that keeps changing
 * delays nobody. Only one caller at a time may use an indexer.
 */
export class Indexer {
  readonly #database: Database<Tables>;
  readonly #readQueue: ReturnType<typeof createQueueRead>;
  #prepared: Prepared[] = [];

  constructor(database: Database<Tables>) {
    this.#database = database;
    this.#readQueue = createQueueRead(database);
  }

  /** Takes queued packets in order; returns how many, and whether the range may have more for another step. */
  async prepare({ after = beginning, upTo = ending, limit = stepSize }: Range): Promise<{ taken: number; more: boolean }> {
    const prepared: Prepared[] = [];
    this.#prepared = prepared;
    let last = after;
    let length = 0;
    while (prepared.length < limit && length < maxStepLength) {
      const fitting = prepared.length === 0 ? firstRead : Math.floor((maxStepLength - length) / (length / prepared.length));
      const size = Math.min(readSize, limit - prepared.length, Math.max(1, fitting));
      const rows = await this.#readQueue(last, upTo, size);
      for (const { tenant, packet, revision, id, text: whole } of rows) {
        const text = whole === null ? '' : indexText(this.#database.name, tenant, readJson(whole) as Searched);
        prepared.push({ key: { tenant, packet }, revision, id, text });
        length += whole?.length ?? 0;
      }
      if (rows.length < size) return { taken: prepared.length, more: false };
      last = prepared.at(-1)!.key;
    }
    return { taken: prepared.length, more: true };
  }

  /** Writes the prepared packets to the index. When the database refuses a row, only that packet is left out. */
  async write(): Promise<Written> {
    const database = this.#database;
    const rows = this.#prepared;
    this.#prepared = [];
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
  }
}

/** Reads a range of the queue with the packets' texts. */
function createQueueRead(database: Database<Tables>) {
  const queueKey = sql`(search_queue.tenant, search_queue.packet)`;
  const rowsOf = (db: Kysely<Tables>) =>
    db
      .selectFrom('search_queue')
      .leftJoin('packets', (join) =>
        join.onRef('packets.tenant', '=', 'search_queue.tenant').onRef('packets.seq', '=', 'search_queue.packet'),
      )
      .leftJoin('contents', ofPacket)
      .select(['search_queue.tenant', 'search_queue.packet', 'search_queue.revision', 'packets.id', wholeText.as('text')])
      .orderBy('search_queue.tenant')
      .orderBy('search_queue.packet');
  const all = database.query<QueueParams, QueueRow>((db, params) =>
    rowsOf(db)
      .where(sql<boolean>`${queueKey} > (${params.after_tenant}, ${params.after_packet})`)
      .where(sql<boolean>`${queueKey} <= (${params.last_tenant}, ${params.last_packet})`)
      .limit(params.limit),
  );
  // What a search reads of the queue names its tenant.
  const ofTenant = database.query<OwnQueueParams, QueueRow>((db, { tenant, after, last, limit }) =>
    rowsOf(db)
      .where('search_queue.tenant', '=', tenant)
      .where('search_queue.packet', '>', after)
      .where('search_queue.packet', '<=', last)
      .limit(limit),
  );
  return (after: QueuePosition, upTo: QueuePosition, limit: number) =>
    after.tenant === upTo.tenant
      ? ofTenant.all({ tenant: after.tenant, after: after.packet, last: upTo.packet, limit })
      : all.all({ after_tenant: after.tenant, after_packet: after.packet, last_tenant: upTo.tenant, last_packet: upTo.packet, limit });
}

type QueueParams = { after_tenant: number; after_packet: number; last_tenant: number; last_packet: number; limit: number };
type OwnQueueParams = { tenant: number; after: number; last: number; limit: number };

interface QueueRow extends RowOf<'search_queue'> {
  /** The packet's id and the whole packet; null when it was deleted. */
  id: string | null;
  text: string | null;
}

/** Writes the rows to the index, if `indexed`, and removes unchanged ones from the queue; returns the removed ones. */
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
      // A packet that changed since it was read stays queued; one that left the queue was indexed or deleted by another writer.
      else if (revision !== undefined) changed.push(row);
    }
    // FTS5 starts a new index segment whenever a rowid is lower than the previous one; in queue order, with many tenants,
    // that would happen for most rows.
    const present = indexed
      ? [...current, ...changed].filter(({ id }) => id !== null).sort((one, other) => one.key.packet - other.key.packet)
      : [];
    const outdated = present.filter((row) => row.revision > 1 || changed.includes(row));
    session.remove(
      'search_queue',
      current.map(({ key }) => key),
    );
    session.remove(
      'search_index',
      outdated.map(({ key }) => indexKey(session, key.tenant, key.packet)),
    );
    session.insert(
      'search_index',
      present.map(({ key, text }) => ({ ...indexKey(session, key.tenant, key.packet), words: text })),
    );
    return current;
  };
  // A packet leaves the queue in the transaction that indexes it, so losing the commit loses nothing else.
  return inSession(database, write, { asyncCommit: true });
}

/** Counts the packets that wait to be indexed. */
export function createQueueReads(database: Database<Tables>) {
  return {
    /** The number of packets that wait to be indexed, counted up to `most`. */
    queued: async (most: number): Promise<number> => {
      const { longReads: db } = database;
      return countOf(db.selectFrom(db.selectFrom('search_queue').select('tenant').limit(most).as('some')));
    },

    /** Whether at least `count` packets wait to be indexed: a short read that does not queue behind long ones. */
    isQueued: async (count: number): Promise<boolean> => {
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
