import { type Kysely, type SqlBool, sql } from 'kysely';

import { countOf } from '../../kit/sql/count.ts';
import type { Agent } from '../model/agent.ts';
import { claimableStatus, heldStatuses } from '../rules/packet-life.ts';
import type { Viewer } from '../rules/sight.ts';
import { contractVersionsOf } from './documents.ts';
import { oneOf } from './engine/storable.ts';
import type { ReadDependencies, ReadScope } from './noun.ts';
import type { Page } from './page-size.ts';
import type { RowOf, Tables } from './tables.ts';

declare module './tables.ts' {
  interface Tables {
    /** An agent that requests of a tenant have named. */
    agents: {
      tenant: number;
      agent_id: string;
      last_seen_at: string;
    };
  }
}

/** An agent that a request named. */
export type SeenAgent = RowOf<'agents'>;

/** The condition of packets that an agent holds, as in the index that counts them. */
const isHeld = sql<SqlBool>`${sql.raw(oneOf('packets.status', heldStatuses))}`;

/** The condition of packets that wait for an agent, as in the index that counts them. */
const isWaiting = sql<SqlBool>`packets.status = ${sql.lit(claimableStatus)} and packets.scheduled_at is null`;

function reads({ database }: ReadDependencies) {
  const ofAll = {
    /** Records when agents were last seen. Instances may report in any order; an earlier time never replaces a later one. */
    async recordSeen(agents: readonly SeenAgent[]): Promise<void> {
      if (agents.length === 0) return;
      // All instances lock rows in the same order.
      const sorted = agents.toSorted((one, other) => one.tenant - other.tenant || (one.agent_id < other.agent_id ? -1 : 1));
      await database.transaction(async (tx) => {
        await tx
          .insertInto('agents')
          .values(sorted)
          .onConflict((conflict) =>
            conflict
              .columns(['tenant', 'agent_id'])
              .doUpdateSet({ last_seen_at: (eb) => eb.ref('excluded.last_seen_at') })
              .whereRef('agents.last_seen_at', '<', 'excluded.last_seen_at'),
          )
          .execute();
      });
    },

    /**
     * Deletes agents that no request has named since `before` and that hold no packet, earliest first and up to `limit`;
     * returns how many it deleted.
     */
    forget: (before: Date, limit: number) => database.transaction((tx) => forgetUnseen(tx, before, limit)),
  };
  const ofTenant = ({ viewer, inLane }: ReadScope) => ({
    /** A page of agents that the caller sees, the most recently seen first, with the number of packets that each holds and that wait for it. */
    page: (page: Page) => inLane((db) => pageOf(db, viewer, page)),
  });
  return { ofTenant, ofAll };

  async function forgetUnseen(tx: Kysely<Tables>, before: Date, limit: number): Promise<number> {
    const unseen = tx
      .selectFrom('agents')
      .select(['tenant', 'agent_id'])
      .where('last_seen_at', '<', before.toISOString())
      .where((eb) =>
        eb.not(
          eb.exists(
            eb
              .selectFrom('packets')
              .select('packets.seq')
              .whereRef('packets.tenant', '=', 'agents.tenant')
              .whereRef('packets.claimed_by', '=', 'agents.agent_id')
              .where(isHeld),
          ),
        ),
      )
      .orderBy('last_seen_at')
      .limit(limit);
    const old = await unseen.execute();
    for (const { tenant, agent_id } of old)
      await tx
        .deleteFrom('agents')
        .where('tenant', '=', tenant)
        .where('agent_id', '=', agent_id)
        // Another instance may have seen it meanwhile.
        .where('last_seen_at', '<', before.toISOString())
        .execute();
    return old.length;
  }

  async function pageOf(
    db: Kysely<Tables>,
    { tenant_number: tenant, sight }: Viewer,
    { limit, offset }: Page,
  ): Promise<{ agents: Agent[]; total: number }> {
    const all = db.selectFrom('agents').where('tenant', '=', tenant);
    const ofTenant = sight === undefined ? all : all.where('agent_id', 'in', [...sight.agents]);
    const seen = await ofTenant
      .select(['agent_id', 'last_seen_at'])
      .orderBy('last_seen_at', 'desc')
      .orderBy('agent_id')
      .limit(limit)
      .offset(offset)
      .execute();
    const total = await countOf(ofTenant);
    const ids = seen.map(({ agent_id }) => agent_id);
    const holding = await countsOf(db, 'claimed_by', tenant, ids, isHeld);
    const waiting = await countsOf(db, 'target_agent', tenant, ids, isWaiting);
    const versions = await contractVersionsOf(db, tenant, ids);
    const agents = seen.map((agent) => ({
      ...agent,
      holding: holding.get(agent.agent_id) ?? 0,
      waiting: waiting.get(agent.agent_id) ?? 0,
      contract: versions.get(agent.agent_id) ?? null,
    }));
    return { agents, total };
  }

  async function countsOf(
    db: Kysely<Tables>,
    column: 'claimed_by' | 'target_agent',
    tenant: number,
    ids: readonly string[],
    condition: typeof isHeld,
  ): Promise<Map<string, number>> {
    if (ids.length === 0) return new Map();
    const rows = await db
      .selectFrom('packets')
      .select([`${column} as agent_id`, sql<number>`count(*)`.as('count')])
      .where('tenant', '=', tenant)
      .where(column, 'in', ids)
      .where(condition)
      .groupBy(column)
      .execute();
    return new Map(rows.map(({ agent_id, count }) => [agent_id as string, Number(count)]));
  }
}

/** The agents that requests of tenants have named. */
export const agents = { reads };
