import { countOf } from '../../kit/sql/count.ts';
import { noContent, type Writes } from './engine/group.ts';
import type { Journal } from './engine/journal.ts';
import { storable } from './engine/storable.ts';
import type { ReadDependencies, ReadScope } from './noun.ts';

/** The counts of open packets that a unit needs. */
export interface OpenPacketNeeds {
  /** Source agents whose open packets it needs counted; their tenant's count is locked. */
  readonly openPacketsOf?: readonly string[];
}

/** Counts of the open packets of source agents. */
export class OpenPacketCounts {
  /** The open packets of the source agents that units named. */
  readonly found = new Map<string, number>();
  readonly #journal: Journal;

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  /** The number of a source agent's open packets, including those that `add` counted. The unit must name the agent. */
  count(sourceAgent: string): number {
    return this.found.get(sourceAgent) ?? 0;
  }

  /** Counts a packet that a unit creates. */
  add(sourceAgent: string): void {
    this.#journal.set(this.found, sourceAgent, this.count(sourceAgent) + 1);
  }
}

/**
 * The counter that is locked while a tenant's open packets are counted and another is created. It is one for all source
 * agents: callers choose their names, so a row for each could be any number of rows.
 */
const lockName = 'open';

/** Counts for the limit on open packets. */
const writes: Writes<OpenPacketNeeds, OpenPacketCounts> = {
  needs: { openPacketsOf: true },
  stage: (_tenant, { journal }) => new OpenPacketCounts(journal),
  erase: noContent,

  async find(session, group) {
    const wanted = group.wanted('agent', (unit) => unit.openPacketsOf);
    const locks = [...new Set(wanted.map(({ tenant }) => tenant))].map((tenant) => ({ tenant, name: lockName }));
    const keys = wanted.map(({ tenant, agent }) => ({ tenant, open_source: storable(agent) }));
    // Sent together; the packets are counted after the counters are locked.
    const [, , counts] = await Promise.all([
      session.insertMissing(
        'counters',
        locks.map((key) => ({ ...key, value: 0 })),
      ),
      session.find('counters', ['tenant'], locks),
      session.count('packets', keys),
    ]);
    for (const [index, { tenant, agent }] of wanted.entries()) group.of(writes, tenant).found.set(agent, counts[index]!);
  },
};

function reads({ database }: ReadDependencies) {
  return {
    ofTenant: ({ viewer: { tenant_number: tenant } }: ReadScope) => ({
      /** How many open packets a source agent has. */
      count: (sourceAgent: string): Promise<number> =>
        countOf(database.reads.selectFrom('packets').where('tenant', '=', tenant).where('open_source', '=', storable(sourceAgent))),
    }),
  };
}

/** Counts for the limit on open packets. */
export const openPacketCounts = { writes, reads };
