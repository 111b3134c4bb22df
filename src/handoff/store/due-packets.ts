import { type Expression, type ExpressionBuilder, type SqlBool, sql } from 'kysely';
import { lowestIdAt } from '../../kit/id.ts';
import type { Database } from '../../kit/sql/dialect.ts';
import { claimableStatus } from '../rules/packet-life.ts';
import { rowsOfAll } from './all-tenants.ts';
import { type DueRound, tenantsOf } from './due.ts';
import { DueWalk } from './due-walk.ts';
import type { ReadDependencies } from './noun.ts';
import type { Tables } from './tables.ts';

type WorkOnPackets = (found: readonly { tenant: number; id: string }[]) => Promise<void>;

/** Finds the packets that time changes. */
export function createDuePackets({ database, due }: ReadDependencies) {
  return {
    /** Works on up to `limit` packets whose `due_at` has passed, earliest first and behind those of the round before: of all tenants, or on a cluster of each. */
    due(now: Date, limit: number, work: WorkOnPackets): Promise<DueRound> {
      const found = database.reads
        .selectFrom('packets')
        .select('tenant')
        .where('due_at', 'is not', null)
        .where('due_at', '<=', now.toISOString());
      return due.each('sweep', {
        scan: () => tenantsOf(found),
        async work(tenant) {
          const some = tenant === undefined ? found : found.where('tenant', '=', tenant);
          const walk = tenant === undefined ? due.packets : new DueWalk(false);
          const { due_at, id } = walk.next(now);
          const behind = some.where(sql<boolean>`(due_at, id) > (${due_at}, ${id})`);
          const rows = await behind.select(['id', 'due_at']).orderBy('due_at').orderBy('id').limit(limit).execute();
          const more = walk.found(rows as readonly ((typeof rows)[number] & { due_at: string })[], rows.length === limit);
          await work(rows);
          return more;
        },
      });
    },
    /** The same for packets that are still `created` and have waited to be claimed since before `before`, oldest first in each tenant. */
    unclaimed(before: Date, limit: number, work: WorkOnPackets): Promise<DueRound> {
      return due.each('expire', {
        scan: async () => [
          ...(await tenantsOf(rowsOfAll(database, database.longReads, 'packets').select('tenant').where(isUnclaimed(before)))),
          ...(await tenantsOf(rowsOfAll(database, database.longReads, 'packets').select('tenant').where(isLongAvailable(before)))),
        ],
        async work(tenant) {
          const created = await unclaimedOf(database, isUnclaimed(before), tenant).limit(limit).execute();
          const left = limit - created.length;
          const available = left === 0 ? [] : await unclaimedOf(database, isLongAvailable(before), tenant).limit(left).execute();
          const rows = [...created, ...available];
          await work(rows);
          return rows.length === limit;
        },
      });
    },
  };
}

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

function unclaimedOf(database: Database<Tables>, condition: Condition, tenant: number | undefined) {
  const unclaimed = rowsOfAll(database, database.longReads, 'packets').select(['packets.tenant', 'packets.id']).where(condition);
  return tenant === undefined ? unclaimed : unclaimed.where('packets.tenant', '=', tenant).orderBy('packets.id');
}
