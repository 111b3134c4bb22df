import { type Expression, type ExpressionBuilder, type RawBuilder, type SqlBool, sql } from 'kysely';

import { createdAt } from '../../kit/id.ts';
import type { Database } from '../../kit/sql/dialect.ts';
import { claimableStatus, workingStatuses } from '../rules/packet-life.ts';
import { rowsOfAll } from './all-tenants.ts';
import type { ReadDependencies } from './noun.ts';
import type { Tables } from './tables.ts';

/** What PostgreSQL refuses to parse in JSON: an escaped NUL or half a surrogate pair. Escaped backslashes are matched to be kept. */
const undecodable = String.raw`(\\\\)|\\u(?:0000|d[89a-f]..)`;
const keepPairs = String.raw`\1`;

/** SQL for a text in a packet, by its name. `state` is the beginning of a JSON object and ends with a comma. */
const textIn = (database: Database<Tables>, name: string) =>
  database.name === 'sqlite'
    ? sql<string | null>`json_extract(rtrim(packets.state, ',') || '}', ${`$.${name}`})`
    : sql<string | null>`(regexp_replace(rtrim(packets.state, ','), ${undecodable}, ${keepPairs}, 'g') || '}')::json ->> ${name}`;

function reads({ database }: ReadDependencies) {
  const ofAll = {
    /** When the oldest unanswered question of all tenants was asked; undefined when there is none. */
    oldestQuestion: () => oldest(sql<string | null>`packets.asked_at`, (eb) => eb('packets.asked_at', 'is not', null)),
    /** When the oldest claim of all tenants that has no lease, and whose holder waits for nobody, was made; undefined when there is none. */
    oldestUnleased: () =>
      oldest(textIn(database, 'claimed_at'), (eb) =>
        eb.and([eb('packets.status', 'in', workingStatuses), eb('packets.lease', 'is', null)]),
      ),
    /** Since when a packet of all tenants waits to be claimed: its creation, or its `not_before`. Undefined when none waits. */
    oldestUnclaimed: async (): Promise<Date | undefined> => {
      const available = await oldest(sql<string | null>`packets.available_at`, (eb) => eb('packets.available_at', 'is not', null));
      const created = await oldestCreated();
      return available !== undefined && (created === undefined || available < created) ? available : created;
    },
    /** The number of packets of all tenants that are open and overdue. */
    async countOverdue(): Promise<number> {
      const row = await ofLiving(rowsOfAll(database.longReads, 'packets'))
        .select(sql<number>`count(*)`.as('count'))
        .where('packets.overdue', '=', sql.lit(1))
        .executeTakeFirst();
      return Number(row?.count ?? 0);
    },
  };
  return { ofAll };

  /** When the oldest packet of all tenants that nobody has claimed and that has no `not_before` was created. */
  async function oldestCreated(): Promise<Date | undefined> {
    const first = sql<string | null>`(select min(packets.id) from packets
      where packets.tenant = tenants.number and packets.status = ${sql.lit(claimableStatus)}
          and packets.scheduled_at is null and packets.available_at is null)`;
    const row = await database.longReads
      .selectFrom('tenants')
      .select(sql<string | null>`min(${first})`.as('id'))
      .where('deleted_at', 'is', null)
      .executeTakeFirst();
    return row?.id == null ? undefined : createdAt(row.id);
  }

  /** The earliest of the times of all tenants' packets that meet the condition. */
  async function oldest(time: RawBuilder<string | null>, condition: (eb: ExpressionBuilder<Tables, 'packets'>) => Expression<SqlBool>) {
    const row = await ofLiving(rowsOfAll(database.longReads, 'packets'))
      .select(sql<string | null>`min(${time})`.as('time'))
      .where(condition)
      .executeTakeFirst();
    return row?.time == null ? undefined : new Date(row.time);
  }
}

/** Only the packets of tenants that are not deleted. */
const ofLiving = (packets: ReturnType<typeof rowsOfAll<'packets'>>) =>
  packets.where('packets.tenant', 'not in', (eb) => eb.selectFrom('tenants').select('number').where('deleted_at', 'is not', null) as never);

/** How old unfinished work is, over all tenants that are not deleted. */
export const ages = { reads };
