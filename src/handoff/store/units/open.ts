import { column } from './column.ts';
import type { PacketTransaction } from './packets.ts';
import type { Kind } from './transaction.ts';

/** The statuses of packets that are not finished. */
export const openStatuses = ['created', 'claimed', 'in_progress', 'awaiting_human'] as const;

/** Counts of the open packets of source agents. */
export class OpenTransaction {
  readonly found = new Map<string, number>();
  readonly #packets: PacketTransaction;

  constructor(packets: PacketTransaction) {
    this.#packets = packets;
  }

  /** The number of a source agent's open packets, including those created by this group. The unit must name the agent. */
  count(sourceAgent: string): number {
    const created = [...this.#packets.inserted.values()].filter(({ packet }) => packet.metadata.source_agent.id === sourceAgent);
    return (this.found.get(sourceAgent) ?? 0) + created.length;
  }
}

/** The counter row that is locked while an agent's open packets are counted and another is created. */
const lockName = (sourceAgent: string) => `open:${column(sourceAgent)}`;

/** Counts for the limit on open packets. */
export const open: Kind = {
  async find(session, group) {
    const wanted = group.wanted((unit) => unit.openOf);
    if (wanted.length === 0) return;
    const keys = wanted.map(([tenant, agent]) => ({ tenant, name: lockName(agent) }));
    await session.insertMissing(
      'counters',
      keys.map((key) => ({ ...key, value: 0 })),
    );
    await session.find('counters', ['tenant'], keys);
    for (const [tenant, agent] of wanted) {
      let count = 0;
      for (const status of openStatuses) count += await session.count('packets', { tenant, source_agent: column(agent), status });
      group.of(tenant).open.found.set(agent, count);
    }
  },
  flush: () => undefined,
};
