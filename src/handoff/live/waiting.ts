import type { LiveEvent } from './event.ts';
import type { Hub, Listener, TenantRef } from './hub.ts';

/** The request of a client that waits for a packet. */
export interface WaitingRequest<Packet> {
  readonly tenant: TenantRef;
  /** Whether an event may be about a packet that it wants. */
  wants(event: LiveEvent): boolean;
  /** Identifies the filter: of requests with the same kind an event wakes only the first, since only one can claim the packet. */
  readonly kind: string | symbol;
  /** Whether its client is still connected. */
  isOpen(): boolean;
  /** Claims a packet, or reads the one it waits for: null when there is none as wanted, undefined when a retry may help. */
  claim(): Promise<Packet | null | undefined>;
}

interface Waiter {
  readonly request: WaitingRequest<unknown>;
  /** Whether a claim is in progress. */
  isClaiming: boolean;
  /** Whether a matching event arrived during the claim. */
  isStale: boolean;
  /** Whether it has timed out, been answered or lost its client: no new claim is started. */
  isOver: boolean;
  readonly ended: Promise<unknown>;
  end(result: unknown): void;
  fail(error: unknown): void;
}

/** The waiting requests of a tenant in order of arrival, and the listener for its events. */
interface Line {
  readonly waiters: Set<Waiter>;
  readonly listener: Listener;
  readonly joined: Promise<void>;
}

/**
 * The requests that wait for work, or for a change of a packet. Events of the tenant wake them, including events from other instances. They are served
 * in order of arrival, and a packet that becomes available wakes only one request of each kind.
 */
export class WaitingList {
  readonly #hub: Hub;
  readonly #lines = new Map<number, Line>();
  #isOpen = true;

  constructor(hub: Hub) {
    this.#hub = hub;
  }

  /** The number of waiting requests. */
  get size(): number {
    let size = 0;
    for (const { waiters } of this.#lines.values()) size += waiters.size;
    return size;
  }

  /** Waits for a packet; resolves with null at the timeout, when the service stops, and if the client has left already. */
  async wait<Packet>(request: WaitingRequest<Packet>, milliseconds: number): Promise<Packet | null> {
    if (!this.#isOpen || !request.isOpen()) return null;
    const line = this.#lineOf(request.tenant);
    const { promise, resolve, reject } = Promise.withResolvers<Packet | null>();
    const end = (packet: unknown) => resolve(packet as Packet | null);
    const waiter: Waiter = { request, isClaiming: false, isStale: false, isOver: false, ended: promise, end, fail: reject };
    line.waiters.add(waiter);
    const timer = setTimeout(() => finish(waiter), milliseconds);
    // The listener hears of every later commit; this first attempt finds what was committed before, for the longest waiting request.
    line.joined.then(() => this.#wakeFirst(line, request.kind), reject);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      this.#remove(request.tenant, line, waiter);
    }
  }

  /** Ends the wait of a request whose client has disconnected. */
  drop(request: WaitingRequest<unknown>): void {
    for (const waiter of this.#lines.get(request.tenant.tenant_number)?.waiters ?? []) if (waiter.request === request) finish(waiter);
  }

  /** Ends all waits with null and accepts no more; resolves when the claims in progress have ended. */
  async stop(): Promise<void> {
    this.#isOpen = false;
    const waiters = [...this.#lines.values()].flatMap((line) => [...line.waiters]);
    for (const waiter of waiters) finish(waiter);
    await Promise.allSettled(waiters.map(({ ended }) => ended));
  }

  #lineOf(tenant: TenantRef): Line {
    const known = this.#lines.get(tenant.tenant_number);
    if (known !== undefined) return known;
    const waiters = new Set<Waiter>();
    const listener: Listener = {
      position: 0,
      isOpen: () => waiters.size > 0,
      receive: (event) => {
        const line = this.#lines.get(tenant.tenant_number);
        if (line !== undefined) this.#wake(line, event);
        return 0;
      },
      // It holds no memory: nothing is sent to it.
      endSlow: () => undefined,
      fail(error) {
        for (const waiter of waiters) waiter.fail(error);
      },
    };
    const joined = this.#hub.startOf(tenant, undefined).then(({ position }) => {
      listener.position = position;
      // Without the sight of the request that came first: others of the tenant join the line, and each claims what it sees.
      return this.#hub.join({ tenant_id: tenant.tenant_id, tenant_number: tenant.tenant_number }, listener);
    });
    const line: Line = { waiters, listener, joined };
    this.#lines.set(tenant.tenant_number, line);
    return line;
  }

  /** Wakes the first request of each kind that may want the packet: a request of one kind may not match where another does. */
  #wake(line: Line, event: LiveEvent): void {
    const woken = new Set<string | symbol>();
    for (const waiter of line.waiters) {
      const { kind } = waiter.request;
      if (woken.has(kind) || waiter.isOver || !waiter.request.wants(event)) continue;
      // A claim in progress may have started before this event, so it is repeated; meanwhile the next request is woken.
      if (waiter.isClaiming) {
        waiter.isStale = true;
        continue;
      }
      woken.add(kind);
      this.#claim(line, waiter);
    }
  }

  /** Wakes the longest waiting request of a kind without a claim in progress. */
  #wakeFirst(line: Line, kind: string | symbol): void {
    for (const waiter of line.waiters) {
      if (waiter.request.kind !== kind || waiter.isClaiming || waiter.isOver) continue;
      this.#claim(line, waiter);
      return;
    }
  }

  #claim(line: Line, waiter: Waiter): void {
    waiter.isClaiming = true;
    waiter.isStale = false;
    waiter.request.claim().then(
      (packet) => {
        waiter.isClaiming = false;
        if (packet !== null && packet !== undefined) {
          waiter.isOver = true;
          waiter.end(packet);
        } else if (waiter.isOver) {
          waiter.end(null);
          // The packet that woke it may still be available to the next request.
          this.#wakeFirst(line, waiter.request.kind);
        } else if (packet === undefined || waiter.isStale) {
          this.#claim(line, waiter);
        }
      },
      (error) => {
        waiter.fail(error);
        // The packet that woke it may still be available to the next request.
        this.#wakeFirst(line, waiter.request.kind);
      },
    );
  }

  #remove(tenant: TenantRef, line: Line, waiter: Waiter): void {
    line.waiters.delete(waiter);
    if (line.waiters.size > 0 || this.#lines.get(tenant.tenant_number) !== line) return;
    this.#lines.delete(tenant.tenant_number);
    this.#hub.leave(tenant, line.listener);
  }
}

/** Ends a wait with null. If a claim is in progress, the wait ends with its result instead, so that no claimed packet is lost. */
function finish(waiter: Waiter): void {
  waiter.isOver = true;
  if (!waiter.isClaiming) waiter.end(null);
}
