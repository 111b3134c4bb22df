import { priorities } from '../../model/common.ts';
import { column } from './column.ts';
import { findPackets, type PacketTransaction } from './packets.ts';
import type { Kind } from './transaction.ts';

/** Which of the packets that wait for somebody are meant. */
export interface NextFilter {
  /** Whose packets; null: anybody's. */
  readonly target_agent: string | null;
  /** All of these tags. */
  readonly tags: readonly string[];
  /** Any of these priorities. */
  readonly priorities: readonly string[];
}

/** Packets that wait, in the order in which they are taken. */
interface Candidates {
  readonly ids: string[];
  /** Whether there may be more than were looked for. */
  readonly isFull: boolean;
}

const keyOf = (filter: NextFilter): string => JSON.stringify(filter);

/** A tenant's packets that wait to be taken. */
export class NextTransaction {
  readonly candidates = new Map<string, Candidates>();
  readonly #packets: PacketTransaction;

  constructor(packets: PacketTransaction) {
    this.#packets = packets;
  }

  /**
   * The id of the packet to be taken next. Null when there is none; undefined when the units before this one took all that
   * were looked for and there may be more, so that asking again may help.
   */
  take(filter: NextFilter): string | null | undefined {
    const { ids, isFull } = this.candidates.get(keyOf(filter))!;
    const free = ids.find((id) => this.#packets.get(id)?.status === 'created');
    return free ?? (isFull ? undefined : null);
  }
}

/**
 * The packets that units ask for without naming them. They come after those that are named: these never wait for a lock, and
 * so no two groups wait for one another.
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
