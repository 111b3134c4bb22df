import type { LiveEvent } from './event.ts';
import type { Hub, Listener, TenantRef } from './hub.ts';

/** A request that waits for a packet. */
export interface Wish<Packet> {
  readonly tenant: TenantRef;
  /** The agent whose packets it wants; null: anybody's. */
  readonly target: string | null;
  /** What tells it from wishes that want other packets. */
  readonly kind: string;
  /** Whether its client is still there. */
  isOpen(): boolean;
  /** Takes a packet: null when there is none, undefined when asking again may help. */
  take(): Promise<Packet | null | undefined>;
}

interface Waiter {
  readonly wish: Wish<unknown>;
  /** Whether a packet is being looked for. */
  isTaking: boolean;
  /** Whether something happened while one was being looked for. */
  isStale: boolean;
  /** Whether its time is over or its client gone: it is looked for no more. */
  isOver: boolean;
  readonly ended: Promise<unknown>;
  end(result: unknown): void;
  fail(error: unknown): void;
}

/** The wishes of a tenant, in the order in which they came, and what hears of its events for them. */
interface Line {
  readonly waiters: Set<Waiter>;
  readonly listener: Listener;
  readonly joined: Promise<void>;
}

/**
 * Requests that wait for work. They are woken by the tenant's events, of other instances too, and served in the order in
 * which they came: a packet that becomes free wakes one of them, however many wait.
 */
export class WaitingList {
  readonly #hub: Hub;
  readonly #lines = new Map<number, Line>();
  #isOpen = true;

  constructor(hub: Hub) {
    this.#hub = hub;
  }

  /** How many requests wait. */
  get size(): number {
    let size = 0;
    for (const { waiters } of this.#lines.values()) size += waiters.size;
    return size;
  }

  /** Waits for a packet: null when none came in time, or the service stops. */
  async wait<Packet>(wish: Wish<Packet>, milliseconds: number): Promise<Packet | null> {
    if (!this.#isOpen) return null;
    const line = this.#lineOf(wish.tenant);
    const { promise, resolve, reject } = Promise.withResolvers<Packet | null>();
    const end = (packet: unknown) => resolve(packet as Packet | null);
    const waiter: Waiter = { wish, isTaking: false, isStale: false, isOver: false, ended: promise, end, fail: reject };
    line.waiters.add(waiter);
    const timer = setTimeout(() => finish(waiter), milliseconds);
    // What is committed from here on is heard of; what was before is found by this look, which is the turn of whoever waits longest.
    line.joined.then(() => this.#wakeFirst(line, wish.kind), reject);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      this.#remove(wish.tenant, line, waiter);
    }
  }

  /** Ends the wait of a request whose client is gone. */
  drop(wish: Wish<unknown>): void {
    for (const waiter of this.#lines.get(wish.tenant.tenant_number)?.waiters ?? []) if (waiter.wish === wish) finish(waiter);
  }

  /** Answers everybody with nothing, and takes no more; resolves when what was being looked for is found or not. */
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
      hear: (event) => {
        const line = this.#lines.get(tenant.tenant_number);
        if (line !== undefined && event.channels.includes('status:created')) this.#wake(line, event);
        return 0;
      },
    };
    const joined = this.#hub.startOf(tenant, undefined).then(({ position }) => {
      listener.position = position;
      return this.#hub.join(tenant, listener);
    });
    const line: Line = { waiters, listener, joined };
    this.#lines.set(tenant.tenant_number, line);
    return line;
  }

  /** Wakes the first that may want the packet, and the first of every other kind, which may want it where that one does not. */
  #wake(line: Line, event: LiveEvent): void {
    const woken = new Set<string>();
    for (const waiter of line.waiters) {
      const { target, kind } = waiter.wish;
      if (woken.has(kind) || waiter.isOver || (target !== null && !event.channels.includes(`agent:${target}`))) continue;
      // One that is looking already may have looked too early; whoever waits behind it is woken for this packet.
      if (waiter.isTaking) {
        waiter.isStale = true;
        continue;
      }
      woken.add(kind);
      this.#take(line, waiter);
    }
  }

  /** Wakes who waits longest of those that want the same and are not looking. */
  #wakeFirst(line: Line, kind: string): void {
    for (const waiter of line.waiters) {
      if (waiter.wish.kind !== kind || waiter.isTaking || waiter.isOver) continue;
      this.#take(line, waiter);
      return;
    }
  }

  #take(line: Line, waiter: Waiter): void {
    waiter.isTaking = true;
    waiter.isStale = false;
    waiter.wish.take().then(
      (packet) => {
        waiter.isTaking = false;
        if (packet !== null && packet !== undefined) {
          waiter.isOver = true;
          waiter.end(packet);
        } else if (waiter.isOver) {
          waiter.end(null);
          // The packet that it was woken for may be there still.
          this.#wakeFirst(line, waiter.wish.kind);
        } else if (packet === undefined || waiter.isStale) {
          this.#take(line, waiter);
        }
      },
      (error) => {
        waiter.fail(error);
        // The packet that it was woken for may be there for another.
        this.#wakeFirst(line, waiter.wish.kind);
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

/** Ends a wait with nothing; one for which a packet is being looked for ends with what is found, which is claimed by then. */
function finish(waiter: Waiter): void {
  waiter.isOver = true;
  if (!waiter.isTaking) waiter.end(null);
}
