import { type Expression, type ExpressionBuilder, type RawBuilder, type SqlBool, sql } from 'kysely';

import { createdAt } from '../../kit/id.ts';
import { readJson } from '../../kit/json.ts';
import type { Database } from '../../kit/sql/dialect.ts';
import type { Packet } from '../model/packet.ts';
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

/** A packet that waits. */
export interface Waiting {
  readonly tenant_id: string;
  readonly packet_id: string;
  /** The agent that holds it; without one its target agent. */
  readonly agent_id: string;
  /** Who is asked; empty: anybody. */
  readonly responder: string;
  /** Since when it waits. */
  readonly since: Date;
}

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
    /** The questions of all tenants that have waited longest, at most `limit`. */
    longestAsked: (limit: number) => longest('asked_at', (eb) => eb('packets.asked_at', 'is not', null), limit),
    /** The packets of all tenants that are overdue for longest, at most `limit`. */
    longestOverdue: (limit: number) => longest('deadline', (eb) => eb('packets.overdue', '=', sql.lit(1)), limit),
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

  /** What waits longest of the rows with a time: of all tenants, at most `limit`. */
  async function longest(
    time: 'asked_at' | 'deadline',
    condition: (eb: ExpressionBuilder<Tables, 'packets'>) => Expression<SqlBool>,
    limit: number,
  ): Promise<Waiting[]> {
    const rows = await ofLiving(rowsOfAll(database.longReads, 'packets'))
      .select(['packets.tenant', 'packets.id', 'packets.claimed_by', 'packets.target_agent', `packets.${time} as since`, 'packets.state'])
      .where(condition)
      .orderBy(`packets.${time}`)
      .limit(sql.lit(limit))
      .execute();
    if (rows.length === 0) return [];
    const tenants = await database.longReads
      .selectFrom('tenants')
      .select(['number', 'id'])
      .where('number', 'in', [...new Set(rows.map(({ tenant }) => tenant))])
      .execute();
    const idOf = new Map(tenants.map(({ number, id }) => [number, id]));
    return rows.map(({ tenant, id, since, claimed_by, target_agent, state }) => {
      const { hitl } = readJson(state.replace(/,$/, '}')) as unknown as Pick<Packet, 'hitl'>;
      const agent_id = claimed_by ?? target_agent;
      return { tenant_id: idOf.get(tenant)!, packet_id: id, agent_id, responder: hitl?.responder ?? '', since: new Date(since!) };
    });
  }
}

/** Only the packets of tenants that are not deleted. */
const ofLiving = (packets: ReturnType<typeof rowsOfAll<'packets'>>) =>
  packets.where('packets.tenant', 'not in', (eb) => eb.selectFrom('tenants').select('number').where('deleted_at', 'is not', null) as never);

/** How old unfinished work is, over all tenants that are not deleted. */
export const ages = { reads };
