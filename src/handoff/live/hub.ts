import { nextTurn } from '../../kit/awaitable.ts';
import { positionOf } from '../rules/channels.ts';
import { type LiveEvent, liveEvent, type TrailEvent } from './event.ts';

/** Reading tenants' trails. */
export interface Trail {
  /** What was appended to a tenant's trail after a position, in order. */
  after(tenant: number, position: number, limit: number): Promise<readonly TrailEvent[]>;
  /** A tenant's last position, and the highest whose event has been removed for its age. */
  bounds(tenant: number): Promise<{ last: number; removed: number }>;
  /** The last positions of tenants; one without events is not among them. */
  positions(tenants: readonly number[]): Promise<readonly { tenant: number; position: number }[]>;
}

/** What one commit appended to a tenant's trail: every position from the first to the last. */
export interface Appended {
  readonly tenant: number;
  readonly first: number;
  readonly last: number;
  readonly events: readonly TrailEvent[];
}

/** The tenant whose events a listener hears. */
export interface TenantRef {
  readonly tenant_id: string;
  readonly tenant_number: number;
}

/** Somebody who hears a tenant's events. */
export interface Listener {
  /** The last position that it has heard of, told or not. The hub keeps it. */
  position: number;
  isOpen(): boolean;
  /** Tells an event, if the listener wants it; `done` is called once it has left. Gives the bytes sent. */
  hear(event: LiveEvent, done?: () => void): number;
}

/** Where a stream begins. */
export interface Start {
  readonly position: number;
  /** Why it can't resume where it asked to. */
  readonly reset?: 'unknown' | 'too_old';
}

/** What the hub knows of a tenant that has listeners. */
interface TenantState {
  readonly tenant: TenantRef;
  readonly listeners: Set<Listener>;
  /** Listeners that read the trail before they join. */
  joining: number;
  /** Everything up to here has been told or waits in `queue`; undefined until the first listener has read the trail. */
  last: number | undefined;
  /** Telling has begun up to here. */
  begun: number;
  /** The trail is known to reach so far, by a commit of our own or by the database. */
  known: number;
  /** Somebody said that there is more. */
  hinted: boolean;
  readonly queue: LiveEvent[];
  telling: boolean;
  reading: Promise<void> | undefined;
}

/** How many events are read at once; fewer where they are large. */
const maxPage = 200;
const firstPage = 16;
/** About how many bytes a page should have. */
const pageBytes = 512 * 1024;
/** How many events may wait to be told; beyond, they are read from the trail when their turn comes. */
const maxQueue = 1000;
/** After how many messages others get their turn. */
const messagesATurn = 500;
/** After how many bytes a replay waits until its client has taken them. */
const unsentBytes = 256 * 1024;

/**
 * Tells listeners what happens, in the order of commits: nothing is missed and nothing told twice. Whoever says that
 * something was appended only gives a hint: events are told at once where they are the next ones, and anything else
 * makes the hub read the trail behind what it told last.
 */
export class Hub {
  readonly #trail: Trail;
  readonly #states = new Map<number, TenantState>();
  /** Why the trail could not be read since the last look. */
  #failure: unknown;

  constructor(trail: Trail) {
    this.#trail = trail;
  }

  /** How many listeners there are. */
  get size(): number {
    let size = 0;
    for (const { listeners } of this.#states.values()) size += listeners.size;
    return size;
  }

  /** Where a stream begins: behind the event it names, or at the end of the trail. */
  async startOf({ tenant_id, tenant_number }: TenantRef, lastEventId: string | undefined): Promise<Start> {
    const { last, removed } = await this.#trail.bounds(tenant_number);
    if (lastEventId === undefined) return { position: last };
    const position = positionOf(tenant_id, lastEventId);
    if (position === undefined || position > last) return { position: last, reset: 'unknown' };
    return position < removed ? { position: last, reset: 'too_old' } : { position };
  }

  /** Tells a listener everything behind its position, and from then on what happens. Rejects when the trail can't be read. */
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
          // What was told before the read began can't have been missed by it.
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

  /** Tells a listener nothing more. */
  leave({ tenant_number }: TenantRef, listener: Listener): void {
    const state = this.#states.get(tenant_number);
    if (state === undefined) return;
    state.listeners.delete(listener);
    this.#forget(state);
  }

  /** Takes what this program has committed. */
  take({ tenant, first, last, events }: Appended): void {
    const state = this.#states.get(tenant);
    if (state === undefined) return;
    state.known = Math.max(state.known, last);
    if (state.last === undefined || last <= state.last) return;
    if (first > state.last + 1 || state.queue.length > maxQueue) return void this.#read(state);
    this.#enqueue(state, events, last);
  }

  /** Takes a hint, which need not be true, that a tenant's trail reaches to a position. */
  hint(tenant: number, position: number): void {
    const state = this.#states.get(tenant);
    if (state?.last === undefined || position <= state.last) return;
    state.hinted = true;
    void this.#read(state);
  }

  /**
   * Compares with the database, and begins to tell what no hint spoke of. A tenant whose trail never ends delays no other's.
   * @throws what a read of a trail has failed with since the last look
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

  /** Joins the listener to those that hear what happens, unless more has been told since it read the trail. */
  #follow(state: TenantState, listener: Listener): boolean {
    if (state.last === undefined) {
      state.last = listener.position;
      state.begun = listener.position;
    } else if (listener.position < state.begun) return false;
    if (listener.isOpen()) state.listeners.add(listener);
    void this.#read(state);
    return true;
  }

  /** Tells a listener events of the trail, no faster than its client takes them; gives their bytes. */
  async #replay({ tenant_id }: TenantRef, listener: Listener, rows: readonly TrailEvent[]): Promise<number> {
    let [bytes, unsent] = [0, 0];
    for (const row of rows) {
      if (!listener.isOpen()) return bytes;
      const event = liveEvent(tenant_id, row);
      listener.position = row.position;
      if (event === undefined) continue;
      bytes += row.payload!.length;
      unsent += row.payload!.length;
      if (unsent < unsentBytes) listener.hear(event);
      else {
        await new Promise<void>((resolve) => {
          if (listener.hear(event, resolve) === 0) resolve();
        });
        unsent = 0;
      }
    }
    return bytes;
  }

  /** Reads what is behind the last event told, as often as more is known of. */
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
        // The next look tries again, and says so.
        this.#failure = error;
        return;
      }
      const bytes = rows.reduce((sum, { payload }) => sum + (payload?.length ?? 0), 0);
      // Positions at the end of the trail may be missing: of packets that were removed.
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
      // While the trail was read, the next events may have come by themselves.
      if (event.position <= state.last!) continue;
      const live = liveEvent(state.tenant.tenant_id, event);
      if (live !== undefined) state.queue.push(live);
    }
    state.last = Math.max(state.last!, last);
    if (!state.telling) void this.#tell(state);
  }

  /** Tells what waits. It begins in a turn of its own, so that whoever made it happen is answered first. */
  async #tell(state: TenantState): Promise<void> {
    state.telling = true;
    let messages = 0;
    await nextTurn();
    for (let event = state.queue.shift(); event !== undefined; event = state.queue.shift()) {
      state.begun = event.position;
      for (const listener of state.listeners) {
        if (listener.position >= event.position) continue;
        listener.position = event.position;
        listener.hear(event);
        messages += 1;
        if (messages % messagesATurn === 0) await nextTurn();
      }
    }
    state.begun = state.last!;
    state.telling = false;
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
        telling: false,
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

/** How many events to read next, by the size of those read last. */
function nextPage(count: number, bytes: number): number {
  return count === 0 || bytes === 0 ? maxPage : Math.max(1, Math.min(maxPage, Math.floor((pageBytes * count) / bytes)));
}
