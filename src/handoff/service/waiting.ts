import { ServiceError } from '../../kit/errors.ts';
import type { LiveEvent } from '../live/event.ts';
import type { WaitingList, WaitingRequest } from '../live/waiting.ts';
import { priorities } from '../model/common.ts';
import type { ClaimNextRequest } from '../model/packet.ts';
import type { ClaimFilter } from '../store/claim-queue.ts';
import type { Idempotency } from '../store/idempotency.ts';
import type { PacketStamp } from '../store/packets.ts';
import type { Caller } from './authentication.ts';
import type { Changed } from './change.ts';
import type { OpenConnections } from './connections.ts';
import type { PacketViews } from './packet-views.ts';
import { claimOf, type PacketService } from './packets.ts';

interface WaitingDependencies {
  readonly views: Pick<PacketViews, 'stamp'>;
  readonly packets: PacketService;
  readonly connections: OpenConnections;
  readonly list: WaitingList;
}

/** Who waits, and for how long. */
export interface Waiter {
  /** The wait ends when its key, session or token becomes invalid. */
  readonly caller: Caller;
  /** Aborts when the client has disconnected. */
  readonly signal: AbortSignal;
  /** 0: the operation does not wait. */
  readonly seconds: number;
}

export type WaitingService = ReturnType<typeof createWaitingService>;

/** The operations that wait: for work, and for a change of a packet. Each counts towards the connection quota while it waits. */
export function createWaitingService({ views, packets, connections, list }: WaitingDependencies) {
  /** Null at the timeout, when the service stops, and when the key becomes invalid (`isRevoked`). @throws LimitReached */
  async function wait<Packet>(
    { caller, signal, seconds }: Waiter,
    wanted: Pick<WaitingRequest<Packet>, 'kind' | 'wants' | 'claim'>,
  ): Promise<{ packet: Packet | null; isRevoked: boolean }> {
    const release = connections.connect(caller);
    const request = { tenant: caller, isOpen: () => !signal.aborted, ...wanted };
    const leave = () => list.drop(request);
    signal.addEventListener('abort', leave, { once: true });
    let isRevoked = false;
    const end = () => {
      isRevoked = true;
      leave();
    };
    const unwatch = connections.watch(caller, { end });
    try {
      return { packet: await list.wait(request, seconds * 1000), isRevoked };
    } finally {
      signal.removeEventListener('abort', leave);
      unwatch();
      release();
    }
  }

  return {
    /** Claims the next packet, or waits for one; null when there is none. */
    async claimNext(waiter: Waiter, request: ClaimNextRequest, idempotency?: Idempotency): Promise<Changed | null> {
      const { caller, signal, seconds } = waiter;
      const filter = filterOf(request);
      const claim = () => packets.claimNext(caller, filter, claimOf(request), { idempotency, isOpen: () => !signal.aborted });
      if (seconds === 0) return retried(claim);
      const { target_agent: agent } = filter;
      const wants = ({ channels }: LiveEvent) =>
        channels.includes('status:created') && (agent === null || channels.includes(`agent:${agent}`));
      return (await wait(waiter, { kind: JSON.stringify(filter), wants, claim })).packet;
    },

    /** Waits until the packet is as wanted, or unknown; false if it is not by then. @throws ServiceError 401 when the key becomes invalid */
    async until(waiter: Waiter, id: string, isWanted: (stamp: PacketStamp) => boolean): Promise<boolean> {
      // A large packet is read once, when it is as wanted.
      const claim = async () => {
        const stamp = await views.stamp(waiter.caller, id);
        return stamp === undefined || isWanted(stamp) ? id : null;
      };
      if ((await claim()) !== null) return true;
      if (waiter.seconds === 0) return false;
      // A kind of its own: an event wakes every request that waits for the packet.
      const wants = ({ channels }: LiveEvent) => channels.includes(`packet:${id}`);
      const { packet, isRevoked } = await wait(waiter, { kind: Symbol(), wants, claim });
      if (isRevoked) throw new ServiceError('UNAUTHORIZED', 'The API key became invalid during the wait.');
      return packet !== null;
    },
  };
}

/** Retries while other callers claim the candidates first. Each retry means that another caller got a packet, so the loop ends. */
async function retried(claim: () => Promise<Changed | null | undefined>): Promise<Changed | null> {
  // biome-ignore lint/plugin: a pass changes one packet, or there is none.
  for (;;) {
    const claimed = await claim();
    if (claimed !== undefined) return claimed;
  }
}

/** The filter of a request for the next packet. */
function filterOf({
  agent_id,
  target_agent = agent_id,
  tags = [],
  priorities: wanted = [...priorities],
  order,
}: ClaimNextRequest): ClaimFilter {
  return {
    target_agent: target_agent === '*' ? null : target_agent,
    tags: [...new Set(tags)].sort(),
    priorities: priorities.filter((priority) => wanted.includes(priority)),
    ...(order === 'due' ? { order } : {}),
  };
}
