import { type Awaitable, eachAtOnce, eachInTurn } from '../../kit/awaitable.ts';
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
  /** Drops the cached policies and people if they have changed. */
  refresh: () => Awaitable<void>;
  /** How long a packet may stay unclaimed, in seconds; 0: for ever. */
  unclaimedTtlSeconds: number;
}

/**
 * Makes the job that ends leases, applies `hitl.on_timeout` and expires unclaimed packets when their time is over. A round returns
 * the milliseconds until the next one.
 */
export function createSweeper({ store, packets, clock, refresh, unclaimedTtlSeconds }: SweeperDependencies): () => Promise<number> {
  return async () => {
    const now = clock();
    const sweep = (command: SweepCommand) => async (found: readonly { tenant: number; id: string }[]) => {
      await refresh();
      await eachAtOnce(found, ({ tenant, id }) => packets.sweep(tenant, id, command));
    };
    const timeOut = () => store.packets.due(now, roundSize, sweep({ kind: 'time_out' }));
    const before = new Date(now.getTime() - unclaimedTtlSeconds * 1000 + 1);
    const expire = () => store.packets.unclaimed(before, roundSize, sweep({ kind: 'expire_unclaimed' }));
    const more = await eachInTurn(unclaimedTtlSeconds > 0 ? [timeOut, expire] : [timeOut], (part) => part());
    return more.includes(true) ? 0 : everyMs;
  };
}
