import type { IncomingHttpHeaders } from 'node:http';

import type { WaitingList, WaitingRequest } from '../live/waiting.ts';
import type { Caller } from '../service/authentication.ts';
import { keyOf, type Listening } from './streams.ts';

/** The request of a caller that waits, and its connection. */
export interface Waiting<Packet> extends Pick<WaitingRequest<Packet>, 'kind' | 'wants' | 'claim'> {
  readonly caller: Caller;
  readonly headers: IncomingHttpHeaders;
  readonly signal: AbortSignal;
  readonly seconds: number;
}

/**
 * Waits for a packet: null at the timeout, when the service stops, and when the caller's key becomes invalid (`isRevoked`).
 * @throws LimitReached when the tenant has all of its connections open
 */
export type Wait = <Packet>(waiting: Waiting<Packet>) => Promise<{ packet: Packet | null; isRevoked: boolean }>;

/** Makes the wait of requests: it counts towards the connection quota, and ends with its connection and its key. */
export function createWait(list: WaitingList, listening: Pick<Listening, 'connect' | 'watch'>): Wait {
  return async ({ caller, headers, signal, seconds, ...wanted }) => {
    const release = listening.connect(caller);
    const request = { tenant: caller, isOpen: () => !signal.aborted, ...wanted };
    const leave = () => list.drop(request);
    signal.addEventListener('abort', leave, { once: true });
    let isRevoked = false;
    const end = () => {
      isRevoked = true;
      leave();
    };
    const unwatch = listening.watch(keyOf(headers), { end });
    try {
      const packet = await list.wait(request, seconds * 1000);
      return { packet, isRevoked };
    } finally {
      signal.removeEventListener('abort', leave);
      unwatch();
      release();
    }
  };
}
