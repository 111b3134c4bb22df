/** How often all pending deliveries are looked at, and how long before a look a delivery may have become due unseen, in milliseconds. */
const wholeMs = 60_000;
const slackMs = 10_000;

/** How many deliveries of a destination are leased before it has a floor, and how many destinations have one. */
const leasedBefore = 100;
const maxFloors = 100;

/** How many destinations are counted. */
const maxCounted = 10_000;

/** A range of numbers of destinations, without its ends. */
interface Gap {
  readonly after: number;
  readonly before: number;
}

/** Where a look at pending deliveries begins: at the floors of some destinations, and in the gaps between them with all. */
export interface LookStart {
  readonly floors: readonly { readonly webhook: number; readonly from: string }[];
  readonly gaps: readonly Gap[];
}

/**
 * Where the search for the first pending delivery of a busy webhook or channel begins, so that it does not visit the index entries
 * of deliveries that were sent long ago: PostgreSQL keeps them while another session holds an older snapshot. Deliveries that
 * another instance makes are due when they are made; one whose transaction takes longer than the slack is found by the next look
 * at all.
 */
export class DeliveryFloors {
  /** By destination, used least recently first. */
  readonly #floors = new Map<number, string>();
  readonly #leased = new Map<number, number>();
  #wholeAt = Number.NEGATIVE_INFINITY;

  /** Where a look at `now` begins. */
  start(now: Date): LookStart {
    // A clock that was set back begins anew too.
    if (Math.abs(now.getTime() - this.#wholeAt) >= wholeMs) {
      this.#wholeAt = now.getTime();
      for (const webhook of this.#floors.keys()) this.#floors.set(webhook, '');
    }
    const known = [...this.#floors].map(([webhook, from]) => ({ webhook, from })).sort((a, b) => a.webhook - b.webhook);
    const ends = [0, ...known.map(({ webhook }) => webhook), Number.MAX_SAFE_INTEGER];
    const gaps = ends.slice(1).map((before, index) => ({ after: ends[index]!, before }));
    return { floors: known, gaps: gaps.filter(({ after, before }) => before - after > 1) };
  }

  /** Notes when the first pending delivery of each destination is due, as a look that began at `now` found it. */
  looked(now: Date, found: readonly { readonly webhook: number; readonly due_at: string }[]): void {
    const slack = new Date(now.getTime() - slackMs).toISOString();
    const first = new Map(found.map(({ webhook, due_at }) => [webhook, due_at]));
    for (const webhook of this.#floors.keys()) {
      const due = first.get(webhook);
      this.#floors.set(webhook, due !== undefined && due < slack ? due : slack);
    }
  }

  /** Notes that deliveries of a destination were leased. */
  leased(webhook: number, count: number): void {
    const total = (this.#leased.get(webhook) ?? 0) + count;
    put(this.#leased, webhook, total, maxCounted);
    if (total >= leasedBefore) put(this.#floors, webhook, this.#floors.get(webhook) ?? '', maxFloors);
  }
}

/** Sets the entry as the newest of a map, and removes the oldest one over `max`. */
function put<V>(map: Map<number, V>, key: number, value: V, max: number): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > max) map.delete(oldest!);
}
