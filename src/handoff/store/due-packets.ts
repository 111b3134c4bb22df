import { eachInTurn } from '../../kit/awaitable.ts';
import { createdAt, lowestIdAt } from '../../kit/id.ts';
import type { Database } from '../../kit/sql/dialect.ts';
import { claimableStatus } from '../rules/packet-life.ts';
import { rowsOfAll } from './all-tenants.ts';
import type { DueWalk } from './due-walk.ts';
import type { ReadDependencies } from './noun.ts';
import type { Tables } from './tables.ts';
import { behind } from './walk.ts';

/** A packet that time changes, and since when it is due. */
export interface DuePacket {
  readonly tenant: number;
  readonly id: string;
  readonly due_at: string;
}

type WorkOnPackets = (found: readonly DuePacket[]) => Promise<unknown>;

/** Finds the packets of all tenants that time changes. */
export const createDuePackets = ({ database, walks }: ReadDependencies) => ({
  /**
   * Works on up to `limit` packets whose `due_at` has passed, earliest first, beginning after the packets of the round
   * before. Returns whether there may be more.
   */
  async due(now: Date, limit: number, work: WorkOnPackets): Promise<boolean> {
    const { due: walk } = walks;
    const from = walk.from(now);
    const rows = await database.reads
      .selectFrom('packets')
      .select(['tenant', 'id', 'due_at'])
      .where('due_at', 'is not', null)
      .where('due_at', '<=', now.toISOString())
      .where('due_at', '>=', from)
      .where(behind(walk.last && { due_at: walk.last.due_at, id: walk.last.id }))
      .orderBy('due_at')
      .orderBy('id')
      .limit(limit)
      .$castTo<DuePacket>()
      .execute();
    const more = walk.found(rows, rows.length === limit);
    await work(rows);
    return more;
  },
  /** The same for packets that are still `created` and have waited to be claimed since before `before`, oldest first in each tenant. */
  async unclaimed(before: Date, limit: number, work: WorkOnPackets): Promise<boolean> {
    const lists = [
      () => createdBefore(database, walks.created, before, limit),
      () => availableBefore(database, walks.available, before, limit),
    ];
    const more = await eachInTurn(lists, async (read) => {
      const found = await read();
      // At once: its walk has passed these rows, so a failure of the other list must not skip them.
      await work(found.rows);
      return found.more;
    });
    return more.includes(true);
  },
});

async function createdBefore({ longReads: db }: Database<Tables>, walk: DueWalk<DuePacket>, before: Date, limit: number) {
  const from = walk.from(before);
  const found = await rowsOfAll(db, 'packets')
    .select(['packets.tenant', 'packets.id'])
    .where('packets.status', '=', claimableStatus)
    .where('packets.id', '<', lowestIdAt(before))
    .where('packets.id', '>=', from === '' ? from : lowestIdAt(new Date(from)))
    .where('packets.scheduled_at', 'is', null)
    .where('packets.available_at', 'is', null)
    .where(behind(walk.last && { 'packets.tenant': walk.last.tenant, 'packets.id': walk.last.id }))
    .orderBy('packets.tenant')
    .orderBy('packets.id')
    .limit(limit)
    .execute();
  const rows = found.map((row) => ({ ...row, due_at: createdAt(row.id).toISOString() }));
  return { rows, more: walk.found(rows, rows.length === limit) };
}

/** The same for packets whose `not_before` has passed: they wait since then. */
async function availableBefore({ longReads: db }: Database<Tables>, walk: DueWalk<DuePacket>, before: Date, limit: number) {
  const { last } = walk;
  const from = walk.from(before);
  const rows = await rowsOfAll(db, 'packets')
    .select(['packets.tenant', 'packets.id', 'packets.available_at as due_at'])
    .where('packets.available_at', 'is not', null)
    .where('packets.available_at', '<', before.toISOString())
    .where('packets.available_at', '>=', from)
    .where(behind(last && { 'packets.tenant': last.tenant, 'packets.available_at': last.due_at, 'packets.id': last.id }))
    .orderBy('packets.tenant')
    .orderBy('packets.available_at')
    .orderBy('packets.id')
    .limit(limit)
    .$castTo<DuePacket>()
    .execute();
  return { rows, more: walk.found(rows, rows.length === limit) };
}
