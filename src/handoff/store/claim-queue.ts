import type { Values } from '../../kit/sql/dialect.ts';
import { priorities } from '../model/common.ts';
import { claimableStatus } from '../rules/packet-life.ts';
import { heldUntil } from '../rules/times.ts';
import type { FreeSearch } from './engine/free-search.ts';
import { type Group, noContent, type Writes } from './engine/group.ts';
import type { Session } from './engine/session.ts';
import { quoted, storable } from './engine/storable.ts';
import { foundColumns } from './packet-rows.ts';
import { findContents, type PacketBuffer, packets } from './packets.ts';

/** The waiting packet that a unit takes. */
export interface ClaimNeeds {
  readonly claims?: ClaimFilter;
}

/** Which waiting packets to take from. */
export interface ClaimFilter {
  /** The agent that the packets are for; null: any agent. */
  readonly target_agent: string | null;
  /** All of these tags. */
  readonly tags: readonly string[];
  /** Any of these priorities. */
  readonly priorities: readonly string[];
  /** Within a priority, the nearest `due_at` first; left out: the oldest packet first. */
  readonly order?: 'due';
}

/** Waiting packets in the order in which they are taken. */
interface Candidates {
  readonly ids: string[];
  /** Whether the search reached its limit, so that there may be more. */
  readonly isFull: boolean;
}

const keyOf = (filter: ClaimFilter): string => JSON.stringify(filter);

/** A tenant's packets that units may take without naming them. */
export class ClaimQueue {
  readonly candidates = new Map<string, Candidates>();
  readonly #packets: PacketBuffer;

  constructor(packets: PacketBuffer) {
    this.#packets = packets;
  }

  /**
   * The id of the next packet to take. Null when there is none; undefined when the units before this one took all packets
   * that were found and there may be more, so that a retry may help.
   */
  take(filter: ClaimFilter): string | null | undefined {
    const { ids, isFull } = this.candidates.get(keyOf(filter))!;
    const free = ids.find((id) => {
      const packet = this.#packets.get(id);
      return packet?.status === claimableStatus && heldUntil(packet) === null;
    });
    return free ?? (isFull ? undefined : null);
  }
}

function freeSearch(tenant: number, { target_agent, tags, priorities: wanted }: ClaimFilter): FreeSearch {
  const isWaiting = `status = ${quoted([claimableStatus])}`;
  return {
    id: 'id',
    condition: `${isWaiting} and scheduled_at is null`,
    where: { tenant, ...(target_agent === null ? {} : { target_agent: storable(target_agent) }) },
    ranked: { column: 'priority', values: priorities.toReversed().filter((priority) => wanted.includes(priority)) },
    among: tags.map((tag) => ({ table: 'packet_tags', column: 'packet_id', where: { tenant, tag: storable(tag) } })),
    // As in the index `packets_waiting_for`.
    nullsFirst: target_agent !== null,
    // A change after which a packet waits has an event with that status, also when its `not_before` has come.
    since: { table: 'events', id: 'packet_id', position: 'position', tenant, condition: isWaiting },
  };
}

/** The search for packets with a `due_at`, the nearest first in each priority. */
function dueSearch(tenant: number, filter: ClaimFilter): FreeSearch {
  const search = freeSearch(tenant, filter);
  return { ...search, condition: `${search.condition} and deadline is not null`, by: 'deadline' };
}

/** A found row with its priority as its last column. */
const priorityOf = (row: Values): string => row.at(-1) as string;

/** Packets in the order of their `due_at` within each priority; those without one, found by age, come after them. */
function byDue(due: readonly Values[], byAge: readonly Values[]): Values[] {
  const known = new Set(due.map(([id]) => id));
  const rankOf = (row: Values) => -(priorities as readonly string[]).indexOf(priorityOf(row));
  return [...due, ...byAge.filter(([id]) => !known.has(id))].toSorted((one, other) => rankOf(one) - rankOf(other));
}

/** Finds as many packets as a filter is wanted for. */
async function findWaiting(session: Session, group: Group<ClaimNeeds>, tenant: number, filter: ClaimFilter, count: number) {
  const columns = [...foundColumns, 'priority'];
  const find = (search: FreeSearch) => session.findFree('packets', columns, search, count, group.beginnings);
  if (filter.order !== 'due') return find(freeSearch(tenant, filter));
  const [due, byAge] = await Promise.all([find(dueSearch(tenant, filter)), find(freeSearch(tenant, filter))]);
  return byDue(due, byAge);
}

/**
 * Finds packets for units that take any waiting one. It runs after the packets that units name are locked and skips locked
 * rows, so that two groups can't deadlock.
 */
const writes: Writes<ClaimNeeds, ClaimQueue> = {
  needs: { claims: true },
  stage: (tenant, group) => new ClaimQueue(group.of(packets.writes, tenant)),
  erase: noContent,

  async find(session, group) {
    const wanted = new Map<string, { tenant: number; filter: ClaimFilter; count: number }>();
    for (const { tenant, unit } of group.units) {
      if (unit.claims === undefined) continue;
      const key = `${tenant} ${keyOf(unit.claims)}`;
      const known = wanted.get(key);
      if (known === undefined) wanted.set(key, { tenant, filter: unit.claims, count: 1 });
      else known.count += 1;
    }
    // Sent together: one round trip for all filters, and one for the contents of what they find.
    const searches = [...wanted.values()].map(async ({ tenant, filter, count }) => {
      const rows = await findWaiting(session, group, tenant, filter, count);
      const ids = rows.map(([id]) => id as string);
      group.of(writes, tenant).candidates.set(keyOf(filter), { ids, isFull: ids.length >= count });
      return rows.map((row) => ({ tenant, row }));
    });
    const found = (await Promise.all(searches)).flat();
    await findContents(
      session,
      group,
      found.filter(({ tenant, row: [id] }) => group.of(packets.writes, tenant).get(id as string) === undefined),
    );
  },
};

/** Waiting packets that units take without naming them. */
export const claimQueue = { writes };
