import type { Clock } from '../../kit/clock.ts';
import type { PacketService } from '../service/packets.ts';
import type { Store } from '../store/store.ts';

/** The most packets of each kind that one round processes. */
const roundSize = 200;

/** How often to look for due packets: they are processed within a second or two. */
const everyMs = 1000;

type SweepCommand = Parameters<PacketService['sweep']>[2];

interface SweeperDependencies {
  store: Store;
  packets: Pick<PacketService, 'sweep'>;
  clock: Clock;
  /** How long a packet may stay unclaimed, in seconds; 0: for ever. */
  unclaimedTtlSeconds: number;
}

/**
 * Makes the job that ends leases, applies `hitl.on_timeout` and expires unclaimed packets when their time is over. A round returns
 * the milliseconds until the next one.
 */
export function createSweeper({ store, packets, clock, unclaimedTtlSeconds }: SweeperDependencies): () => Promise<number> {
  return async () => {
    const now = clock();
    const sweep = (command: SweepCommand) => async (found: readonly { tenant: number; id: string }[]) => {
      const ends = await Promise.allSettled(found.map(({ tenant, id }) => packets.sweep(tenant, id, command)));
      const failed = ends.find((end) => end.status === 'rejected');
      if (failed !== undefined) throw failed.reason;
    };
    const before = new Date(now.getTime() - unclaimedTtlSeconds * 1000 + 1);
    // A packet that fails does not stop the others; its error is reported after all of them.
    const [timedOut] = await Promise.allSettled([store.packets.due(now, roundSize, sweep({ kind: 'time_out' }))]);
    const more = unclaimedTtlSeconds > 0 && (await store.packets.unclaimed(before, roundSize, sweep({ kind: 'expire_unclaimed' })));
    if (timedOut.status === 'rejected') throw timedOut.reason;
    return timedOut.value || more ? 0 : everyMs;
  };
}
