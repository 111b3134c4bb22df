import { nextTurn } from '../../kit/awaitable.ts';
import { positionOf } from '../rules/channels.ts';
import { type LiveEvent, liveEvent, type TrailEvent } from './event.ts';

/** Read access to the trails of tenants. */
export interface Trail {
  /** The events after a position of a tenant's trail, in order. */
  after(tenant: number, position: number, limit: number): Promise<readonly TrailEvent[]>;
  /** A tenant's last position, and the highest position whose event is past its retention. */
  bounds(tenant: number): Promise<{ last: number; removed: number }>;
  /** The last positions of tenants; tenants without events are left out. */
  positions(tenants: readonly number[]): Promise<readonly { tenant: number; position: number }[]>;
}

/** The events that one commit appended to a tenant's trail: every position from `first` to `last`. */
export interface Appended {
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

/** A subscriber to a tenant's events. */
export interface Listener {
  /** The last position that was offered to it. Maintained by the hub. */
  position: number;
  isOpen(): boolean;
  /** Sends an event if the listener wants it; `done` is called once it is written out. Returns the bytes sent. */
  receive(event: LiveEvent, done?: () => void): number;
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
  readonly listeners: Set<Listener>;
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
  isSending: boolean;
  reading: Promise<void> | undefined;
}

/** The most events that are read at once; fewer when they are large. */
const maxPage = 200;
const firstPage = 16;
/** The size that a page of events aims for, in bytes. */
const pageBytes = 512 * 1024;
/** The most events in the queue; when it is full, later events are read from the trail instead. */
const maxQueue = 1000;
/** How many messages are sent before the event loop gets a turn. */
const messagesPerTurn = 500;
/** How many bytes a replay sends before it waits for its client to read them. */
const maxUnsentBytes = 256 * 1024;

/**
 * Sends events to listeners in the order of commits, each exactly once. Announcements of new events are only hints: events
 * that directly follow the last one are sent at once, and for anything else the hub reads the trail after the last event
 * it sent.
 */
export class Hub {
  readonly #trail: Trail;
  readonly #states = new Map<number, TenantState>();
  /** The error of a failed read of the trail, reported by the next `look`. */
  #failure: unknown;

  constructor(trail: Trail) {
    this.#trail = trail;
  }

  /** The number of listeners. */
  get size(): number {
    let size = 0;
    for (const { listeners } of this.#states.values()) size += listeners.size;
    return size;
  }

  /** The start of a stream: after the given event, or at the end of the trail. */
  async startOf({ tenant_id, tenant_number }: TenantRef, lastEventId: string | undefined): Promise<Start> {
    const { last, removed } = await this.#trail.bounds(tenant_number);
    if (lastEventId === undefined) return { position: last };
    const position = positionOf(tenant_id, lastEventId);
    if (position === undefined || position > last) return { position: last, reset: 'unknown' };
    return position < removed ? { position: last, reset: 'too_old' } : { position };
  }

  /** Sends a listener every event after its position, then new events as they happen. Rejects when the trail can't be read. */
  async join(tenant: TenantRef, listener: Listener): Promise<void> {
    const state = this.#stateOf(tenant);
    state.joining += 1;
    try {
      let limit = firstPage;
      while (listener.isOpen()) {
        const { begun } = state;
        const rows = await this.#trail.after(tenant.tenant_number, listener.position, limit);
        const bytes = await this.#replay(tenant, listener, rows);
        if (rows.length < limit) {
          // The read includes every event that was sent before it started.
          listener.position = Math.max(listener.position, begun);
          if (this.#follow(state, listener)) return;
        }
        limit = nextPage(rows.length, bytes);
      }
    } finally {
      state.joining -= 1;
      this.#forget(state);
    }
  }

  /** Removes a listener. */
  leave({ tenant_number }: TenantRef, listener: Listener): void {
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
    if (first > state.last + 1 || state.queue.length > maxQueue) return void this.#read(state);
    this.#enqueue(state, events, last);
  }

  /** Receives a hint, which may be wrong, about the last position of a tenant's trail. */
  hint(tenant: number, position: number): void {
    const state = this.#states.get(tenant);
    if (state?.last === undefined || position <= state.last) return;
    state.hinted = true;
    void this.#read(state);
  }

  /**
   * Compares positions with the database, and starts to send events that no hint announced. It does not wait for the
   * sending, so a busy tenant delays no other.
   * @throws the error of a failed read of a trail since the last call
   */
  async look(): Promise<void> {
    const failure = this.#failure;
    this.#failure = undefined;
    const tenants = [...this.#states.keys()];
    if (tenants.length === 0) return;
    for (const { tenant, position } of await this.#trail.positions(tenants)) {
      const state = this.#states.get(tenant);
      if (state === undefined) continue;
      state.known = Math.max(state.known, position);
      void this.#read(state);
    }
    if (failure !== undefined) throw failure;
  }

  /** Subscribes the listener to new events; false when more were sent since it read the trail, so that it must read again. */
  #follow(state: TenantState, listener: Listener): boolean {
    if (state.last === undefined) {
      state.last = listener.position;
      state.begun = listener.position;
    } else if (listener.position < state.begun) return false;
    if (listener.isOpen()) state.listeners.add(listener);
    void this.#read(state);
    return true;
  }

  /** Sends events of the trail to a listener, no faster than its client reads them; returns their size in characters. */
  async #replay({ tenant_id }: TenantRef, listener: Listener, rows: readonly TrailEvent[]): Promise<number> {
    let [bytes, unsent] = [0, 0];
    for (const row of rows) {
      if (!listener.isOpen()) return bytes;
      const event = liveEvent(tenant_id, row);
      listener.position = row.position;
      if (event === undefined) continue;
      bytes += row.payload!.length;
      unsent += row.payload!.length;
      if (unsent < maxUnsentBytes) listener.receive(event);
      else {
        await new Promise<void>((resolve) => {
          if (listener.receive(event, resolve) === 0) resolve();
        });
        unsent = 0;
      }
    }
    return bytes;
  }

  /** Reads the trail after the last event, until no more events are known. */
  #read(state: TenantState): Promise<void> {
    if (state.last === undefined || !hasMore(state)) return Promise.resolve();
    state.reading ??= this.#readOn(state).finally(() => {
      state.reading = undefined;
    });
    return state.reading;
  }

  async #readOn(state: TenantState): Promise<void> {
    let limit = firstPage;
    while (hasMore(state) && this.#states.get(state.tenant.tenant_number) === state) {
      while (state.queue.length > maxQueue) await nextTurn();
      const { known } = state;
      state.hinted = false;
      let rows: readonly TrailEvent[];
      try {
        rows = await this.#trail.after(state.tenant.tenant_number, state.last!, limit);
      } catch (error) {
        // The next look retries and reports the error.
        this.#failure = error;
        return;
      }
      const bytes = rows.reduce((sum, { payload }) => sum + (payload?.length ?? 0), 0);
      // The last positions may be missing: the events of removed packets are deleted.
      const reached = rows.at(-1)?.position ?? 0;
      const isWhole = rows.length < limit;
      if (!isWhole) state.hinted = true;
      const last = isWhole ? Math.max(known, reached) : reached;
      this.#enqueue(state, rows, last);
      limit = nextPage(rows.length, bytes);
    }
  }

  #enqueue(state: TenantState, events: readonly TrailEvent[], last: number): void {
    for (const event of events) {
      // A commit may have delivered these events while the trail was read.
      if (event.position <= state.last!) continue;
      const live = liveEvent(state.tenant.tenant_id, event);
      if (live !== undefined) state.queue.push(live);
    }
    state.last = Math.max(state.last!, last);
    if (!state.isSending) void this.#sendQueue(state);
  }

  /** Sends the queue. It starts in a turn of its own, so that the request that caused an event is answered first. */
  async #sendQueue(state: TenantState): Promise<void> {
    state.isSending = true;
    let messages = 0;
    await nextTurn();
    for (let event = state.queue.shift(); event !== undefined; event = state.queue.shift()) {
      state.begun = event.position;
      for (const listener of state.listeners) {
        if (listener.position >= event.position) continue;
        listener.position = event.position;
        listener.receive(event);
        messages += 1;
        if (messages % messagesPerTurn === 0) await nextTurn();
      }
    }
    state.begun = state.last!;
    state.isSending = false;
  }

  #stateOf(tenant: TenantRef): TenantState {
    let state = this.#states.get(tenant.tenant_number);
    if (state === undefined) {
      state = {
        tenant,
        listeners: new Set(),
        joining: 0,
        last: undefined,
        begun: 0,
        known: 0,
        hinted: false,
        queue: [],
        isSending: false,
        reading: undefined,
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

/** The number of events to read next, from the average size of the last page. */
function nextPage(count: number, bytes: number): number {
  return count === 0 || bytes === 0 ? maxPage : Math.max(1, Math.min(maxPage, Math.floor((pageBytes * count) / bytes)));
}
