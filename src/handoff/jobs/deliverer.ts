import type { Clock } from '../../kit/clock.ts';
import { OutgoingError, statusFailure } from '../../kit/outgoing/failures.ts';
import type { Outgoing } from '../../kit/outgoing/outgoing.ts';
import { parseTraceparent, type TraceContext } from '../../kit/trace-context.ts';
import { type AttemptOutcome, currentSecrets } from '../rules/delivery.ts';
import { signatureHeaders } from '../rules/signature.ts';
import type { DeliveryService } from '../service/deliveries.ts';
import type { ClaimedDelivery, DeliveryQueue } from '../store/deliveries.ts';
import type { Store } from '../store/store.ts';
import { AttemptRoom, type Place } from './attempt-room.ts';
import { type Attempt, Receiver } from './receivers.ts';

/** The lease on a delivery: if this process dies, another one can take the delivery afterwards. */
const leaseMs = 20_000;

/** The timeout of an attempt, in milliseconds: short enough to record the outcome well within the lease. */
export const attemptMs = 10_000;

/** The least remaining lease with which an attempt is started, in milliseconds. */
const neededMs = 12_000;

/** The most bytes of an answer's body that are read before the connection is closed. */
const maxAnswerBytes = 64 * 1024;

/** The longest pause between rounds, in milliseconds. A commit wakes the deliverer at once; this covers any missed wake-up. */
const everyMs = 1000;

export interface DelivererParts {
  store: Store;
  deliveries: DeliveryService;
  outgoing: Outgoing;
  clock: Clock;
  userAgent: string;
  /** The timeout of an attempt, in milliseconds. */
  attemptMs: number;
  /** Called with the outcome and the duration of each attempt. */
  onAttempt(outcome: string, seconds: number): void;
  onError(error: unknown): void;
  /** Requests another round as soon as possible. */
  wake(): void;
}

/** A delivery at the moment of an attempt. */
interface Sending {
  readonly delivery: ClaimedDelivery;
  readonly queue: DeliveryQueue;
  readonly body: Buffer;
  /** The trace of the request that caused the event; undefined if it had none. */
  readonly trace: TraceContext | undefined;
  readonly now: Date;
}

/** A leased delivery, its webhook, and the end of its lease. */
interface Item {
  readonly delivery: ClaimedDelivery;
  readonly queue: DeliveryQueue;
  readonly until: Date;
}

/** Sends pending deliveries to webhooks. */
export interface Deliverer {
  /** Leases due deliveries and starts sending them; returns the milliseconds until the next round. */
  round(): Promise<number>;
  /** Resolves when no attempt is running. */
  idle(): Promise<void>;
  /** Starts no more attempts, waits at most `withinMs` for running ones, and releases the leases of unsent deliveries. */
  stop(withinMs: number): Promise<void>;
}

/**
 * Makes a deliverer. Concurrency is limited per receiver and per tenant: a slow or dead receiver gets few attempts and never
 * delays deliveries to others, however many of its own are pending.
 */
export function createDeliverer(parts: DelivererParts): Deliverer {
  const { store, clock, outgoing } = parts;
  const receivers = new Map<string, Receiver<Item>>();
  const running = new Set<Promise<void>>();
  /** Receivers that wait because a limit over all receivers, or of a tenant, is reached. */
  const blocked = new Set<Receiver<Item>>();
  /** Tenants with due deliveries that were not leased, because they have as many as a tenant may have. */
  const short = new Set<number>();
  /** Deliveries whose attempt was aborted by a stop. */
  const aborted: Item[] = [];
  let isStopping = false;
  const room = new AttemptRoom(() => {
    for (const receiver of [...blocked]) {
      blocked.delete(receiver);
      startWaiting(receiver);
    }
  });

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
      const next = receiver.waiting.findIndex(({ queue }) => room.has(queue.tenant));
      if (next === -1) {
        blocked.add(receiver);
        return;
      }
      const [item] = receiver.waiting.splice(next, 1) as [Item];
      // Too little of the lease is left: the delivery becomes due again when it expires.
      if (item.until.getTime() - nowMs() < neededMs) room.giveUp(item.queue.tenant);
      else start(item, receiver);
    }
  }

  function start(item: Item, receiver: Receiver<Item>): void {
    const attempt = receiver.begin(nowMs());
    const place = room.enter(item.queue.tenant);
    const ended = attemptOn(item, { receiver, attempt, place })
      .catch(parts.onError)
      .finally(() => {
        receiver.end(attempt);
        running.delete(ended);
        place.leave();
        startWaiting(receiver);
        const isShort = short.delete(item.queue.tenant);
        const hasMore = receiver.hasMore && receiver.room(nowMs()) > 0;
        if (hasMore) receiver.hasMore = false;
        if (hasMore || isShort) parts.wake();
      });
    running.add(ended);
  }

  interface RunningAttempt {
    readonly receiver: Receiver<Item>;
    readonly attempt: Attempt;
    readonly place: Place;
  }

  async function attemptOn(item: Item, { receiver, attempt, place }: RunningAttempt): Promise<void> {
    const { delivery, queue, until } = item;
    const message = await store.deliveries.message(delivery.event_id);
    // The packet was removed permanently, and the delivery with it.
    if (message === undefined) return;
    // Encoded once, for the signatures and the request.
    const body = Buffer.from(message.body);
    place.resize(body.length);
    const started = performance.now();
    const outcome = await send(parts, { delivery, queue, body, trace: parseTraceparent(message.traceparent ?? undefined), now: clock() });
    if (outcome === undefined) {
      aborted.push(item);
      return;
    }
    receiver.answered(attempt, outcome.error === undefined, nowMs());
    parts.onAttempt(outcome.error ?? 'delivered', (performance.now() - started) / 1000);
    await parts.deliveries.record(queue, { seq: delivery.seq, until }, outcome);
  }

  /** How many deliveries to lease for each due webhook. The webhooks of one receiver share its room, and those of a tenant its leases. */
  function quotasOf(queues: readonly DeliveryQueue[]): { owner: number; quota: number }[] {
    const left = new Map<number, number>();
    const quotas: { owner: number; quota: number }[] = [];
    // The longest due first, so that no webhook of a receiver or of a tenant starves.
    const byDue = queues.toSorted((one, other) => (one.due_at < other.due_at ? -1 : 1));
    for (const [receiver, own] of Map.groupBy(byDue, ({ url }) => receiverOf(url))) {
      const most = Math.min(receiver.room(nowMs()), room.left);
      const first = own.slice(0, most);
      for (const { webhook, tenant } of first) {
        const wanted = Math.floor(most / first.length);
        const quota = Math.min(wanted, left.get(tenant) ?? room.leftOf(tenant));
        left.set(tenant, (left.get(tenant) ?? room.leftOf(tenant)) - quota);
        if (quota < wanted) short.add(tenant);
        if (quota > 0) quotas.push({ owner: webhook, quota });
      }
    }
    return quotas;
  }

  return {
    async round() {
      const now = clock();
      const queues = await store.deliveries.queues();
      for (const { webhook } of queues.filter(({ gone }) => gone === 1)) if (await store.deliveries.cancel(webhook, now)) parts.wake();
      const due = queues.filter(({ gone, active, due_at }) => gone === 0 && active === 1 && due_at <= now.toISOString());
      await claimDue(due, now);
      const wanted = new Set(queues.map(({ url }) => new URL(url).origin));
      for (const [origin, receiver] of receivers) {
        startWaiting(receiver);
        // Drop receivers without pending deliveries, so that the map does not grow forever.
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
      await store.deliveries.release([...waiting, ...aborted], clock());
    },
  };

  /** Leases as many due deliveries as their receivers have room for. */
  async function claimDue(due: readonly DeliveryQueue[], now: Date): Promise<void> {
    const quotas = quotasOf(due);
    if (quotas.length === 0) return;
    const until = new Date(now.getTime() + leaseMs);
    const claimed = Map.groupBy(await store.deliveries.claim(quotas, now, until), ({ webhook }) => webhook);
    for (const { owner, quota } of quotas) {
      const queue = due.find(({ webhook }) => webhook === owner)!;
      const own = claimed.get(owner) ?? [];
      const receiver = receiverOf(queue.url);
      receiver.waiting.push(...own.map((delivery) => ({ delivery, queue, until })));
      if (own.length > 0) room.lease(queue.tenant, own.length);
      if (own.length >= quota) receiver.hasMore = true;
    }
  }

  /** Makes one attempt; undefined when a stop aborted it. */
  async function send(
    { userAgent, attemptMs: timeoutMs }: DelivererParts,
    { delivery, queue, body, trace, now }: Sending,
  ): Promise<AttemptOutcome | undefined> {
    const headers = {
      'content-type': 'application/json; charset=utf-8',
      'user-agent': userAgent,
      'x-service-event': delivery.event_type,
      'x-service-delivery': delivery.id,
      'x-service-attempt': String(delivery.attempts + 1),
      ...signatureHeaders({ eventId: delivery.event_id, body, secrets: currentSecrets(queue, now), now }),
    };
    try {
      // Idempotent: receivers recognise a repeat by the delivery id.
      const request = { url: queue.url, headers, body, timeoutMs, maxBytes: maxAnswerBytes, idempotent: true, owner: queue.tenant, trace };
      const answer = await outgoing.send(request);
      const retryAfter = answer.headers['retry-after'];
      return { error: statusFailure(answer.status), statusCode: answer.status, ...(retryAfter === undefined ? {} : { retryAfter }) };
    } catch (error) {
      if (!(error instanceof OutgoingError)) throw error;
      if (error.failure === 'cancelled') return undefined;
      // `send` reads no more of a body than its limit, so it never fails with `too_large`.
      return { error: error.failure === 'too_large' ? 'connection_reset' : error.failure, statusCode: undefined };
    }
  }
}
