import type { Clock } from '../../kit/clock.ts';
import type { PacketService } from '../service/packets.ts';
import type { Store } from '../store/store.ts';

/** How many packets of a kind one round looks at. */
const roundSize = 200;

/** How often due packets are looked for: what is due happens within a second or two. */
const everyMs = 1000;

interface SweeperParts {
  store: Store;
  packets: PacketService;
  clock: Clock;
  /** How long a packet may stay unclaimed, in seconds; 0: for ever. */
  unclaimedTtlSeconds: number;
}

/**
 * One round of what time alone does to packets: `hitl.on_timeout`, and the expiry of unclaimed packets.
 * Gives the milliseconds until the next round.
 */
export function createSweeper({ store, packets, clock, unclaimedTtlSeconds }: SweeperParts): () => Promise<number> {
  return async () => {
    const now = clock();
    const due = await store.sweep.due(now, roundSize);
    const ends = await Promise.allSettled(due.map(({ tenant, id }) => packets.sweep(tenant, id, { kind: 'time_out' })));

    const unclaimed =
      unclaimedTtlSeconds === 0 ? [] : await store.sweep.unclaimed(new Date(now.getTime() - unclaimedTtlSeconds * 1000 + 1), roundSize);
    ends.push(...(await Promise.allSettled(unclaimed.map(({ tenant, id }) => packets.sweep(tenant, id, { kind: 'expire_unclaimed' })))));
    // One packet that fails holds up no other, and is told.
    const failed = ends.find((end) => end.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    return due.length === roundSize || unclaimed.length === roundSize ? 0 : everyMs;
  };
}
