import { priorities } from '../../model/common.ts';
import { column } from './column.ts';
import { findPackets, type PacketTransaction } from './packets.ts';
import type { Kind } from './transaction.ts';

/** Which waiting packets to take from. */
export interface NextFilter {
  /** The agent that the packets are for; null: any agent. */
  readonly target_agent: string | null;
  /** All of these tags. */
  readonly tags: readonly string[];
  /** Any of these priorities. */
  readonly priorities: readonly string[];
}

/** Waiting packets in the order in which they are taken. */
interface Candidates {
  readonly ids: string[];
  /** Whether the search reached its limit, so that there may be more. */
  readonly isFull: boolean;
}

const keyOf = (filter: NextFilter): string => JSON.stringify(filter);

/** A tenant's packets that units may take without naming them. */
export class NextTransaction {
  readonly candidates = new Map<string, Candidates>();
  readonly #packets: PacketTransaction;

  constructor(packets: PacketTransaction) {
    this.#packets = packets;
  }

  /**
   * The id of the next packet to take. Null when there is none; undefined when the units before this one took all packets
   * that were found and there may be more, so that a retry may help.
   */
  take(filter: NextFilter): string | null | undefined {
    const { ids, isFull } = this.candidates.get(keyOf(filter))!;
    const free = ids.find((id) => this.#packets.get(id)?.status === 'created');
    return free ?? (isFull ? undefined : null);
  }
}

/**
 * Finds packets for units that take any waiting one. It runs after the packets that units name are locked and skips locked
 * rows, so that two groups can't deadlock.
 */
export const next: Kind = {
  async find(session, group) {
    const wanted = new Map<string, { tenant: number; filter: NextFilter; count: number }>();
    for (const { tenant, unit } of group.units) {
      if (unit.next === undefined) continue;
      const key = `${tenant} ${keyOf(unit.next)}`;
      const known = wanted.get(key);
      if (known === undefined) wanted.set(key, { tenant, filter: unit.next, count: 1 });
      else known.count += 1;
    }
    for (const { tenant, filter, count } of wanted.values()) {
      const ids: string[] = [];
      const { target_agent, tags } = filter;
      for (const priority of priorities.toReversed()) {
        if (ids.length === count || !filter.priorities.includes(priority)) continue;
        const where = { tenant, ...(target_agent === null ? {} : { target_agent: column(target_agent) }), priority };
        const among = tags.map((tag) => ({ table: 'packet_tags', column: 'packet_id', where: { tenant, tag: column(tag) } }));
        ids.push(...(await session.findFree('packets', 'id', { condition: "status = 'created'", where, among }, count - ids.length)));
      }
      const own = group.of(tenant);
      const unknown = ids.filter((id) => own.packets.get(id) === undefined);
      await findPackets(
        session,
        group,
        unknown.map((id): [number, string] => [tenant, id]),
      );
      own.next.candidates.set(keyOf(filter), { ids, isFull: ids.length === count });
    }
  },
  flush: () => undefined,
};
