import type { Clock } from '../../kit/clock.ts';
import { OutgoingError, statusFailure } from '../../kit/outgoing/failures.ts';
import type { Outgoing } from '../../kit/outgoing/outgoing.ts';
import { type AttemptOutcome, secretsInForce } from '../rules/delivery.ts';
import { signatureHeaders } from '../rules/signature.ts';
import type { DeliveryService } from '../service/deliveries.ts';
import type { ClaimedDelivery, DeliveryQueue } from '../store/deliveries.ts';
import type { Store } from '../store/store.ts';
import { type Attempt, Receiver } from './receivers.ts';

/** How long a delivery is in hand: whatever becomes of this program, it can be taken again then. */
const leaseMs = 20_000;

/** How long an attempt may take, in milliseconds; so it ends, and its result is kept, well within the lease. */
export const attemptMs = 10_000;

/** An attempt is not begun with less of its lease left. */
const neededMs = 12_000;

/** How much of an answer's body is read before the connection is dropped. */
const maxAnswerBytes = 64 * 1024;

/** The most attempts at once, whatever their receivers. */
const maxRunning = 1024;

/** About the most bytes of bodies in hand at once; what is in hand already may be as large as a body over it. */
const maxBodies = 64 * 1024 * 1024;

/** What a body counts for until it is read. */
const unreadBody = 1024 * 1024;

/** How often due deliveries are looked for at least. A commit wakes the deliverer at once; this is the guarantee. */
const everyMs = 1000;

export interface DelivererParts {
  store: Store;
  deliveries: DeliveryService;
  outgoing: Outgoing;
  clock: Clock;
  userAgent: string;
  /** How long an attempt may take, in milliseconds. */
  attemptMs: number;
  /** Told how each attempt ended, and how long it took. */
  onAttempt(outcome: string, seconds: number): void;
  onError(error: unknown): void;
  /** Has another round run soon. */
  wake(): void;
}

/** A delivery in hand, and what it goes to. */
interface Item {
  readonly delivery: ClaimedDelivery;
  readonly queue: DeliveryQueue;
  readonly until: Date;
}

/** Sends what waits for webhooks. */
export interface Deliverer {
  /** Takes due deliveries in hand and begins to send them; gives the milliseconds until the next round. */
  round(): Promise<number>;
  /** Resolves when nothing is in hand. */
  idle(): Promise<void>;
  /** Begins nothing more, waits for what is in hand but no longer than told, and gives back what was not sent. */
  stop(withinMs: number): Promise<void>;
}

/**
 * Sends due deliveries. How many are in hand is decided receiver by receiver: one that is slow or dead has a few attempts at
 * once and never takes another's place, however much waits for it.
 */
export function createDeliverer(parts: DelivererParts): Deliverer {
  const { store, clock, outgoing } = parts;
  const receivers = new Map<string, Receiver<Item>>();
  const running = new Set<Promise<void>>();
  /** Receivers whose turn waits for others' attempts to end. */
  const crowdedOut = new Set<Receiver<Item>>();
  /** Deliveries whose attempt was cut short. */
  const cut: Item[] = [];
  let bodies = 0;
  let isStopping = false;

  const nowMs = () => clock().getTime();

  function receiverOf(url: string): Receiver<Item> {
    const { origin } = new URL(url);
    let receiver = receivers.get(origin);
    if (receiver === undefined) {
      receiver = new Receiver();
      receivers.set(origin, receiver);
    }
    return receiver;
  }

  function startWaiting(receiver: Receiver<Item>): void {
    while (!isStopping && receiver.canStart(nowMs())) {
      if (running.size >= maxRunning || bodies + unreadBody > maxBodies) {
        crowdedOut.add(receiver);
        return;
      }
      const item = receiver.waiting.shift()!;
      // Its lease is nearly over: it is due again then, here or elsewhere.
      if (item.until.getTime() - nowMs() < neededMs) continue;
      start(item, receiver);
    }
  }

  function start(item: Item, receiver: Receiver<Item>): void {
    const attempt = receiver.begin(nowMs());
    const held = hold();
    const ended = attemptOn(item, { receiver, attempt, held })
      .catch(parts.onError)
      .finally(() => {
        receiver.end(attempt);
        running.delete(ended);
        held.set(0);
        startWaiting(receiver);
        if (!receiver.hasMore || receiver.room(nowMs()) === 0) return;
        receiver.hasMore = false;
        parts.wake();
      });
    running.add(ended);
  }

  /** Counts a body that is in hand: by its size once that is known. */
  function hold(): { set(size: number): void } {
    let held = unreadBody;
    bodies += held;
    return {
      set(size) {
        bodies += size - held;
        held = size;
        for (const receiver of [...crowdedOut]) {
          crowdedOut.delete(receiver);
          startWaiting(receiver);
        }
      },
    };
  }

  interface Hand {
    readonly receiver: Receiver<Item>;
    readonly attempt: Attempt;
    readonly held: ReturnType<typeof hold>;
  }

  async function attemptOn(item: Item, { receiver, attempt, held }: Hand): Promise<void> {
    const { delivery, queue, until } = item;
    const text = await store.deliveries.body(delivery.event_id);
    // Its packet was removed for good, and the delivery with it.
    if (text === undefined) return;
    // Made into bytes once, for the signatures and the request.
    const body = Buffer.from(text);
    held.set(body.length);
    const started = performance.now();
    const outcome = await send(parts, { delivery, queue, body, now: clock() });
    if (outcome === undefined) {
      cut.push(item);
      return;
    }
    receiver.answered(attempt, outcome.error === undefined, nowMs());
    parts.onAttempt(outcome.error ?? 'delivered', (performance.now() - started) / 1000);
    await parts.deliveries.record(queue, { seq: delivery.seq, until }, outcome);
  }

  /** How many deliveries each due webhook may be taken; what one receiver has room for is shared among its webhooks. */
  function takesOf(queues: readonly DeliveryQueue[]): { owner: number; quota: number }[] {
    const byReceiver = Map.groupBy(queues, ({ url }) => receiverOf(url));
    return [...byReceiver].flatMap(([receiver, own]) => {
      const room = Math.min(receiver.room(nowMs()), maxRunning - running.size);
      // In turn, so that none of many webhooks of one receiver is always last.
      const first = own.toSorted((one, other) => (one.due_at < other.due_at ? -1 : 1)).slice(0, room);
      return first.map(({ webhook }) => ({ owner: webhook, quota: Math.floor(room / first.length) }));
    });
  }

  return {
    async round() {
      const now = clock();
      const queues = await store.deliveries.queues();
      for (const { webhook } of queues.filter(({ gone }) => gone === 1)) if (await store.deliveries.cancel(webhook, now)) parts.wake();
      const due = queues.filter(({ gone, active, due_at }) => gone === 0 && active === 1 && due_at <= now.toISOString());
      await take(due, now);
      const wanted = new Set(queues.map(({ url }) => new URL(url).origin));
      for (const [origin, receiver] of receivers) {
        startWaiting(receiver);
        // One that nothing waits for is forgotten: there may be many over time.
        if (receiver.isIdle() && !wanted.has(origin)) receivers.delete(origin);
      }
      const next = queues.filter((queue) => queue.active === 1 && !due.includes(queue)).map(({ due_at }) => Date.parse(due_at));
      return Math.max(1, Math.min(everyMs, ...next.map((moment) => moment - now.getTime())));
    },

    async idle() {
      while (running.size > 0) await Promise.all(running);
    },

    async stop(withinMs) {
      isStopping = true;
      const waiting = [...receivers.values()].flatMap((receiver) => receiver.waiting.splice(0));
      const late = new Promise<void>((resolve) => setTimeout(resolve, withinMs).unref());
      await Promise.race([this.idle(), late]);
      outgoing.close();
      await this.idle();
      await store.deliveries.release([...waiting, ...cut], clock());
    },
  };

  /** Takes due deliveries in hand, for as many as their receivers have room for. */
  async function take(due: readonly DeliveryQueue[], now: Date): Promise<void> {
    const takes = takesOf(due);
    if (takes.length === 0) return;
    const until = new Date(now.getTime() + leaseMs);
    const claimed = Map.groupBy(await store.deliveries.claim(takes, now, until), ({ webhook }) => webhook);
    for (const { owner, quota } of takes) {
      const queue = due.find(({ webhook }) => webhook === owner)!;
      const own = claimed.get(owner) ?? [];
      const receiver = receiverOf(queue.url);
      receiver.waiting.push(...own.map((delivery) => ({ delivery, queue, until })));
      if (own.length >= quota) receiver.hasMore = true;
    }
  }

  /** One attempt; undefined when it was cut short by the end of the service. */
  async function send(
    { userAgent, attemptMs: timeoutMs }: DelivererParts,
    { delivery, queue, body, now }: { delivery: ClaimedDelivery; queue: DeliveryQueue; body: Buffer; now: Date },
  ): Promise<AttemptOutcome | undefined> {
    const headers = {
      'content-type': 'application/json; charset=utf-8',
      'user-agent': userAgent,
      'x-service-event': delivery.event_type,
      'x-service-delivery': delivery.id,
      'x-service-attempt': String(delivery.attempts + 1),
      ...signatureHeaders({ eventId: delivery.event_id, body, secrets: secretsInForce(queue, now), now }),
    };
    try {
      // Receivers know a repeat by the delivery's id.
      const request = { url: queue.url, headers, body, timeoutMs, maxBytes: maxAnswerBytes, idempotent: true };
      const answer = await outgoing.send(request);
      const retryAfter = answer.headers['retry-after'];
      return { error: statusFailure(answer.status), statusCode: answer.status, ...(retryAfter === undefined ? {} : { retryAfter }) };
    } catch (error) {
      if (!(error instanceof OutgoingError)) throw error;
      if (error.failure === 'cancelled') return undefined;
      return { error: error.failure === 'too_large' ? undefined : error.failure, statusCode: undefined };
    }
  }
}
