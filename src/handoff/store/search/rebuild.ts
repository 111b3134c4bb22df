import { type Kysely, sql } from 'kysely';

import { countOf } from '../../../kit/sql/count.ts';
import type { Database } from '../../../kit/sql/dialect.ts';
import { finalStatuses } from '../../rules/packet-life.ts';
import type { Tables } from '../tables.ts';
import { Indexer } from './indexer.ts';

/** Packets that searches find: all but erased ones, which alone are in a final status without a time of their end. */
const findable = sql`(ended_at is not null or status not in (${sql.join(finalStatuses)}))`;

/** Queues every packet for an index that has none of them. */
export async function queueAll(tx: Kysely<unknown>): Promise<void> {
  await sql`delete from search_queue`.execute(tx);
  await sql`insert into search_queue (tenant, packet, revision) select tenant, seq, revision from packets where ${findable}`.execute(tx);
}

/** Completes the rows of a tenant that were imported: queues its packets, and makes running services read its keys. */
export async function completeTenant(tx: Kysely<unknown>, tenant: number): Promise<void> {
  await sql`delete from search_queue where tenant = ${tenant}`.execute(tx);
  const own = sql`select tenant, seq, revision from packets where tenant = ${tenant} and ${findable}`;
  await sql`insert into search_queue (tenant, packet, revision) ${own}`.execute(tx);
  await sql`update versions set value = value + 1 where name = 'access'`.execute(tx);
}

/**
 * Indexes everything that is queued, in a process that no service runs in.
 * @throws Error with the packets that the database refused to index
 */
export async function indexAll(database: Database<Tables>, onProgress: (done: number, total: number) => void): Promise<void> {
  const indexer = new Indexer(database);
  const total = await countOf(database.reads.selectFrom('search_queue'));
  const refused: string[] = [];
  let done = 0;
  for (let more = true; more; ) {
    const prepared = await indexer.prepare({});
    refused.push(...(await indexer.write()).refused);
    done += prepared.taken;
    onProgress(done, Math.max(done, total));
    more = prepared.more;
  }
  if (refused.length > 0) throw new Error(`The search index refused packets, so a search can't find them: ${refused.join(', ')}`);
}
