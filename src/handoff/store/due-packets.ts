import { type Expression, type ExpressionBuilder, type SqlBool, sql } from 'kysely';
import { lowestIdAt } from '../../kit/id.ts';
import type { Database } from '../../kit/sql/dialect.ts';
import { claimableStatus } from '../rules/packet-life.ts';
import { rowsOfAll } from './all-tenants.ts';
import type { ReadDependencies } from './noun.ts';
import type { Tables } from './tables.ts';

type WorkOnPackets = (found: readonly { tenant: number; id: string }[]) => Promise<void>;

/** Finds the packets of all tenants that time changes. */
export const createDuePackets = ({ database, walk }: ReadDependencies) => ({
  /**
   * Works on up to `limit` packets whose `due_at` has passed, earliest first and behind those of the round before. Returns whether
   * there may be more.
   */
  async due(now: Date, limit: number, work: WorkOnPackets): Promise<boolean> {
    const { due_at, id } = walk.next(now);
    const rows = await database.reads
      .selectFrom('packets')
      .select(['tenant', 'id', 'due_at'])
      .where('due_at', 'is not', null)
      .where('due_at', '<=', now.toISOString())
      .where(sql<boolean>`(due_at, id) > (${due_at}, ${id})`)
      .orderBy('due_at')
      .orderBy('id')
      .limit(limit)
      .execute();
    const more = walk.found(rows as readonly ((typeof rows)[number] & { due_at: string })[], rows.length === limit);
    await work(rows);
    return more;
  },
  /** The same for packets that are still `created` and have waited to be claimed since before `before`, oldest first in each tenant. */
  async unclaimed(before: Date, limit: number, work: WorkOnPackets): Promise<boolean> {
    const created = await unclaimedOf(database, isUnclaimed(before)).limit(limit).execute();
    const left = limit - created.length;
    const available = left === 0 ? [] : await unclaimedOf(database, isLongAvailable(before)).limit(left).execute();
    const rows = [...created, ...available];
    await work(rows);
    return rows.length === limit;
  },
});

type Condition = (eb: ExpressionBuilder<Tables, 'packets'>) => Expression<SqlBool>;

const isUnclaimed =
  (before: Date): Condition =>
  (eb) =>
    eb.and([
      eb('packets.status', '=', claimableStatus),
      eb('packets.id', '<', lowestIdAt(before)),
      eb('packets.scheduled_at', 'is', null),
      eb('packets.available_at', 'is', null),
    ]);

/** The same for packets whose `not_before` has passed: they wait since then. */
const isLongAvailable =
  (before: Date): Condition =>
  (eb) =>
    eb.and([eb('packets.available_at', 'is not', null), eb('packets.available_at', '<', before.toISOString())]);

const unclaimedOf = (database: Database<Tables>, condition: Condition) =>
  rowsOfAll(database.longReads, 'packets').select(['packets.tenant', 'packets.id']).where(condition);
