import { nextTurn } from '../../kit/awaitable.ts';
import { FairQueue } from '../../kit/fair-queue.ts';
import type { Turns } from '../../kit/turns.ts';
import { positionOf } from '../rules/channels.ts';
import type { Sight } from '../rules/sight.ts';
import { type LiveEvent, liveEvent, type TrailEvent } from './event.ts';
import type { ReplayMemory } from './replay-memory.ts';

/** Read access to the trails of tenants. */
export interface Trail {
  /** The positions after a position of a tenant's trail, in order, with the bytes of their payloads. */
  sizesAfter(tenant: number, position: number, limit: number): Promise<readonly { position: number; bytes: number }[]>;
  /** The events of a tenant's trail after a position, up to and including another, in order. */
  between(tenant: number, after: number, upTo: number): Promise<readonly TrailEvent[]>;
  /** A tenant's last position, and the highest position whose event is past its retention. */
  range(tenant: number): Promise<{ last: number; removed: number }>;
  /** The last positions of tenants; tenants without events are left out. */
  positions(tenants: readonly number[]): Promise<readonly { tenant: number; position: number }[]>;
}

/** The events that one commit appended to a tenant's trail: every position from `first` to `last`. */
interface Appended {
  readonly tenant: number;
  readonly first: number;
  readonly last: number;
  readonly events: readonly TrailEvent[];
}

/** A tenant, by its id and its number in the store. */
export interface TenantRef {
  readonly tenant_id: string;
  readonly tenant_number: number;
}

/** Who listens: a tenant, and which of its packets the listener sees. */
type Listening = TenantRef & { readonly sight?: Sight | undefined };

/** A subscriber to a tenant's events. */
export interface Listener {
  /** The last position that was offered to it. Maintained by the hub. */
  position: number;
  isOpen(): boolean;
  /** Sends an event if the listener wants it; `done` is called once it is written out. Returns the bytes sent. */
  receive(event: LiveEvent, done?: () => void): number;
  /** Ends it, because its client reads its replay too slowly while others wait for the memory. */
  endSlow(): void;
  /** Called when it failed to receive an event, and is no longer a listener. */
  fail(error: unknown): void;
}

/** The position at which a stream starts. */
export interface Start {
  readonly position: number;
  /** Why it can't resume from the event id it was given. */
  readonly reset?: 'unknown' | 'too_old';
}

/** The hub's state for a tenant with listeners. */
interface TenantState {
  readonly tenant: TenantRef;
  /** With what each sees. */
  readonly listeners: Map<Listener, Sight | undefined>;
  /** The number of listeners that are replaying the trail before they join. */
  joining: number;
  /** Every event up to this position has been sent or is in `queue`; undefined until the first listener has read the trail. */
  last: number | undefined;
  /** Sending has started for every event up to this position. */
  begun: number;
  /** The last position of the trail known from a commit of this process or from the database. */
  known: number;
  /** Whether a hint announced more events. */
  hinted: boolean;
  readonly queue: LiveEvent[];
  /** The characters of the payloads in `queue`. */
  queued: number;
  isSending: boolean;
  isReading: boolean;
}

/** A part of the trail: the last position, the bytes of its payloads, and whether the trail ends there. */
interface Page {
  readonly upTo: number;
  readonly bytes: number;
  readonly isLast: boolean;
}

/** The most events that are read at once. */
const maxPage = 200;
/** The most bytes of payloads that are read at once; a single event may be larger. */
const pageBytes = 256 * 1024;
/** The most events, and characters of their payloads, in the queue; beyond it, later events are read from the trail instead. */
const maxQueue = 1000;
const maxQueued = 8 * 1024 * 1024;
/** How many messages are sent before the event loop gets a turn. */
const messagesPerTurn = 100;

/**
 * How many streams read the trail at once to begin or to catch up, of all tenants and of one. They share PostgreSQL's ten
 * connections for short reads with requests. The quotas of connections bound how many wait.
 */
const replayReads = { concurrency: 6, perOwner: 2, maxWaitingPerOwner: Number.POSITIVE_INFINITY, maxWaitMs: 60_000 };

interface HubDependencies {
  readonly trail: Trail;
  readonly memory: ReplayMemory;
  /** A page is read, and sent, in a turn of its tenant. */
  readonly turns: Turns;
  /** Called when the events of a tenant could not be read or sent. The next `poll` tries again. */
  onFailure(error: unknown, tenantId: string): void;
}

/**
 * Sends events to listeners in the order of commits, each exactly once. Announcements of new events are only hints: events
 * that directly follow the last one are sent at once, and for anything else the hub reads the trail after the last event
 * it sent.
 */
export class Hub {
  readonly #parts: HubDependencies;
  readonly #states = new Map<number, TenantState>();
  readonly #replayReads = new FairQueue(replayReads);

  constructor(parts: HubDependencies) {
    this.#parts = parts;
  }

  /** The number of listeners. */
  get size(): number {
    let size = 0;
    for (const { listeners } of this.#states.values()) size += listeners.size;
    return size;
  }

  /** The start of a stream: after the given event, or at the end of the trail. */
  async startOf({ tenant_id, tenant_number }: TenantRef, lastEventId: string | undefined): Promise<Start> {
    const { last, removed } = await this.#replayReads.run(tenant_number, () => this.#parts.trail.range(tenant_number));
    if (lastEventId === undefined) return { position: last };
    const position = positionOf(tenant_id, lastEventId);
    if (position === undefined || position > last) return { position: last, reset: 'unknown' };
    return position < removed ? { position: last, reset: 'too_old' } : { position };
  }

  /** Sends a listener every event that it sees after its position, then new events as they happen. Rejects when the trail can't be read. */
  async join(tenant: Listening, listener: Listener): Promise<void> {
    const { turns } = this.#parts;
    const { tenant_number } = tenant;
    const state = this.#stateOf(tenant);
    state.joining += 1;
    try {
      while (listener.isOpen()) {
        const { begun } = state;
        const page = await this.#replayReads.run(tenant_number, () => this.#pageAfter(tenant_number, listener.position));
        if (page.bytes > 0) await this.#replay(tenant, listener, page);
        else listener.position = page.upTo;
        if (!page.isLast) {
          await turns.next(tenant_number);
          continue;
        }
        // The read includes every event that was sent before it started.
        listener.position = Math.max(listener.position, begun);
        if (this.#follow(state, listener, tenant.sight)) return;
      }
    } finally {
      state.joining -= 1;
      this.#forget(state);
    }
  }

  /** Removes a listener. */
  leave({ tenant_id, tenant_number }: TenantRef, listener: Listener): void {
    this.#parts.memory.leave(tenant_id, listener);
    const state = this.#states.get(tenant_number);
    if (state === undefined) return;
    state.listeners.delete(listener);
    this.#forget(state);
  }

  /** Receives the events of a commit of this process. */
  receive({ tenant, first, last, events }: Appended): void {
    const state = this.#states.get(tenant);
    if (state === undefined) return;
    state.known = Math.max(state.known, last);
    if (state.last === undefined || last <= state.last) return;
    if (first > state.last + 1 || isFull(state)) this.#read(state);
    else this.#enqueue(state, events, last);
  }

  /** Receives a hint, which may be wrong, about the last position of a tenant's trail. */
  hint(tenant: number, position: number): void {
    const state = this.#states.get(tenant);
    if (state?.last === undefined || position <= state.last) return;
    state.hinted = true;
    this.#read(state);
  }

  /**
   * Compares positions with the database, and starts to send events that no hint announced. It does not wait for the
   * sending, so a busy tenant delays no other.
   */
  async poll(): Promise<void> {
    this.#parts.memory.reclaim();
    const tenants = [...this.#states.keys()];
    if (tenants.length === 0) return;
    const positions = await this.#parts.trail.positions(tenants);
    for (const { tenant, position } of positions) {
      const state = this.#states.get(tenant);
      if (state === undefined) continue;
      state.known = Math.max(state.known, position);
      this.#read(state);
    }
  }

  /** Subscribes the listener to new events; false when more were sent since it read the trail, so that it must read again. */
  #follow(state: TenantState, listener: Listener, sight: Sight | undefined): boolean {
    if (state.last === undefined) {
      state.last = listener.position;
      state.begun = listener.position;
    } else if (listener.position < state.begun) return false;
    if (listener.isOpen()) state.listeners.set(listener, sight);
    this.#read(state);
    return true;
  }

  /** The next page after a position: where it ends, the bytes of its payloads, and whether the trail ends there. */
  async #pageAfter(tenant: number, position: number): Promise<Page> {
    const sizes = await this.#parts.trail.sizesAfter(tenant, position, maxPage);
    let count = 0;
    let bytes = 0;
    for (const { bytes: own } of sizes) {
      if (count > 0 && bytes + own > pageBytes) break;
      count += 1;
      bytes += own;
    }
    return { upTo: sizes[count - 1]?.position ?? position, bytes, isLast: count === sizes.length && count < maxPage };
  }

  /** Sends a page to a listener; resolves when its client has taken it, so that a replay holds one page at most. */
  async #replay({ tenant_id, tenant_number, sight }: Listening, listener: Listener, { upTo, bytes }: Page): Promise<void> {
    const release = await this.#parts.memory.acquire(tenant_id, listener, bytes);
    try {
      if (!listener.isOpen()) return;
      const events = await this.#replayReads.run(tenant_number, async () => {
        await this.#parts.turns.next(tenant_number);
        return this.#parts.trail.between(tenant_number, listener.position, upTo);
      });
      await new Promise<void>((resolve) => {
        let pending = 1;
        const done = () => {
          pending -= 1;
          if (pending === 0) resolve();
        };
        for (const row of events) {
          if (!listener.isOpen()) break;
          listener.position = row.position;
          const event = liveEvent(tenant_id, row);
          if (event === undefined || !event.isSeenBy(sight)) continue;
          pending += 1;
          if (listener.receive(event, done) === 0) done();
        }
        done();
      });
      if (listener.isOpen()) listener.position = upTo;
    } finally {
      release();
    }
  }

  /** Starts to read the trail after the last event, until no more events are known. */
  #read(state: TenantState): void {
    if (state.last === undefined || state.isReading || !hasMore(state)) return;
    state.isReading = true;
    this.#readOn(state).catch((error: unknown) => this.#parts.onFailure(error, state.tenant.tenant_id));
  }

  async #readOn(state: TenantState): Promise<void> {
    const { turns } = this.#parts;
    const { tenant_number } = state.tenant;
    try {
      while (hasMore(state) && this.#states.get(tenant_number) === state) {
        // biome-ignore lint/plugin: this loop reads nothing.
        while (isFull(state)) await nextTurn();
        await turns.next(tenant_number);
        const { known } = state;
        state.hinted = false;
        const { upTo, isLast } = await this.#pageAfter(tenant_number, state.last!);
        const rows = upTo === state.last ? [] : await this.#parts.trail.between(tenant_number, state.last!, upTo);
        if (!isLast) state.hinted = true;
        // The last positions may be missing: the events of removed packets are deleted.
        this.#enqueue(state, rows, isLast ? Math.max(known, upTo) : upTo);
      }
    } finally {
      state.isReading = false;
    }
  }

  #enqueue(state: TenantState, events: readonly TrailEvent[], last: number): void {
    // A commit may have delivered these events while the trail was read.
    const fresh = events.filter(({ position }) => position > state.last!).map((event) => liveEvent(state.tenant.tenant_id, event));
    for (const event of fresh) {
      if (event === undefined) continue;
      state.queue.push(event);
      state.queued += event.length;
    }
    state.last = Math.max(state.last!, last);
    if (state.isSending) return;
    state.isSending = true;
    this.#sendQueue(state).catch((error: unknown) => this.#parts.onFailure(error, state.tenant.tenant_id));
  }

  /** Sends the queue. It starts in a turn of its own, so that the request that caused an event is answered first. */
  async #sendQueue(state: TenantState): Promise<void> {
    let messages = 0;
    await nextTurn();
    try {
      // biome-ignore lint/plugin: the loop over listeners gives turns itself, and an event is serialized once for all of them.
      for (let event = state.queue.shift(); event !== undefined; event = state.queue.shift()) {
        state.queued -= event.length;
        state.begun = event.position;
        // biome-ignore lint/plugin: as above.
        for (const [listener, sight] of state.listeners) {
          if (listener.position >= event.position) continue;
          listener.position = event.position;
          if (!event.isSeenBy(sight)) continue;
          this.#send(state, listener, event);
          messages += 1;
          if (messages % messagesPerTurn === 0) await nextTurn();
        }
      }
      state.begun = state.last!;
    } finally {
      state.isSending = false;
    }
  }

  /** Sends an event to a listener. One that fails is removed, and delays no other. */
  #send(state: TenantState, listener: Listener, event: LiveEvent): void {
    try {
      listener.receive(event);
    } catch (error) {
      state.listeners.delete(listener);
      this.#parts.onFailure(error, state.tenant.tenant_id);
      listener.fail(error);
    }
  }

  #stateOf(tenant: TenantRef): TenantState {
    let state = this.#states.get(tenant.tenant_number);
    if (state === undefined) {
      state = {
        tenant,
        listeners: new Map(),
        joining: 0,
        last: undefined,
        begun: 0,
        known: 0,
        hinted: false,
        queue: [],
        queued: 0,
        isSending: false,
        isReading: false,
      };
      this.#states.set(tenant.tenant_number, state);
    }
    return state;
  }

  #forget(state: TenantState): void {
    const { tenant_number } = state.tenant;
    if (state.listeners.size === 0 && state.joining === 0 && this.#states.get(tenant_number) === state) this.#states.delete(tenant_number);
  }
}

const hasMore = ({ last, known, hinted }: TenantState): boolean => hinted || last! < known;

const isFull = ({ queue, queued }: TenantState): boolean => queue.length > maxQueue || queued > maxQueued;
