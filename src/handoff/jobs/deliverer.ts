import { nextTurn } from '../../kit/awaitable.ts';
import type { Clock } from '../../kit/clock.ts';
import type { DeliveryService } from '../service/deliveries.ts';
import type { DeliveryQueue, DeliveryTake } from '../store/deliveries.ts';
import type { Store } from '../store/store.ts';
import { AttemptRoom, type Reservation } from './attempt-room.ts';
import { type Attempt, Receiver } from './receivers.ts';
import type { Item, Send, Sent } from './senders.ts';

/** The lease on a delivery: if this process dies, another one can take the delivery afterwards. */
const leaseMs = 20_000;

/** The timeout of an attempt, in milliseconds: short enough to record the outcome well within the lease. */
export const attemptMs = 10_000;

/** The least remaining lease with which an attempt is started, in milliseconds. */
const neededMs = 12_000;

/** The most attempts that begin in one turn of the event loop, so that requests are answered between them. */
const beginsPerTurn = 8;

/** The longest pause between rounds, in milliseconds. A commit wakes the deliverer at once; this covers any missed wake-up. */
const everyMs = 1000;

interface DelivererParts {
  store: Store;
  deliveries: DeliveryService;
  clock: Clock;
  send: Send;
  /** Aborts the attempts in progress. */
  abort(): void;
  /** Called with the outcome and the duration of each attempt. */
  onAttempt(outcome: string, seconds: number): void;
  onError(error: unknown): void;
  /** Requests another round as soon as possible. */
  wake(): void;
}

/** What identifies the receiver of deliveries: its origin, and for all mails the mail server. */
const receiverName = ({ kind, url }: DeliveryQueue): string => (kind === 'email' ? 'mail server' : new URL(url).origin);

/**
 * Makes the job that sends pending deliveries to webhooks and channels. Concurrency is limited per receiver and per tenant: a slow or dead receiver gets few attempts and never
 * delays deliveries to others, however many of its own are pending.
 */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: its functions share state that nothing else may reach; each of them is short.
export function createDeliverer(parts: DelivererParts) {
  const { store, clock } = parts;
  const receivers = new Map<string, Receiver<Item>>();
  const running = new Set<Promise<void>>();
  /** Receivers that wait because a limit over all receivers, or of a tenant, is reached. */
  const blocked = new Set<Receiver<Item>>();
  /** Tenants with due deliveries that were not leased, because they have as many as a tenant may have. */
  const short = new Set<number>();
  /** Deliveries whose attempt was aborted by a stop. */
  const aborted: Item[] = [];
  /** Receivers that wait for the next turn of the event loop. */
  const held = new Set<Receiver<Item>>();
  let begunInTurn = 0;
  let isStopping = false;
  const room = new AttemptRoom(() => {
    for (const receiver of [...blocked]) {
      blocked.delete(receiver);
      startWaiting(receiver);
    }
  });

  const nowMs = () => clock().getTime();

  function receiverOf(queue: DeliveryQueue): Receiver<Item> {
    const name = receiverName(queue);
    let receiver = receivers.get(name);
    if (receiver === undefined) {
      receiver = new Receiver();
      receivers.set(name, receiver);
    }
    return receiver;
  }

  function startWaiting(receiver: Receiver<Item>): void {
    while (!isStopping && receiver.canStart(nowMs())) {
      if (begunInTurn >= beginsPerTurn) {
        held.add(receiver);
        return;
      }
      const next = receiver.waiting.findIndex(({ queue }) => room.has(queue.tenant));
      if (next === -1) {
        blocked.add(receiver);
        return;
      }
      const [item] = receiver.waiting.splice(next, 1) as [Item];
      // Too little of the lease is left: the delivery becomes due again when it expires.
      if (item.until.getTime() - nowMs() < neededMs) room.releaseLease(item.queue.tenant);
      else start(item, receiver);
    }
  }

  /** Counts an attempt that begins in this turn. */
  function countBegin(): void {
    begunInTurn += 1;
    if (begunInTurn > 1) return;
    setImmediate(() => {
      begunInTurn = 0;
      for (const receiver of [...held]) {
        held.delete(receiver);
        startWaiting(receiver);
      }
    });
  }

  function start(item: Item, receiver: Receiver<Item>): void {
    countBegin();
    const attempt = receiver.begin(nowMs());
    const reservation = room.reserve(item.queue.tenant);
    const ended = attemptOn(item, receiver, attempt, reservation)
      .catch(parts.onError)
      .finally(() => {
        receiver.end(attempt);
        running.delete(ended);
        reservation.release();
        startWaiting(receiver);
        const isShort = short.delete(item.queue.tenant);
        const hasMore = receiver.hasMore && receiver.room(nowMs()) > 0;
        if (hasMore) receiver.hasMore = false;
        if (hasMore || isShort) parts.wake();
      });
    running.add(ended);
  }

  async function attemptOn(item: Item, receiver: Receiver<Item>, attempt: Attempt, reservation: Reservation): Promise<void> {
    const { delivery, queue, until } = item;
    const started = performance.now();
    const sent = await sendingOf(item, reservation);
    if (sent === 'aborted') aborted.push(item);
    if (sent === 'paused') await store.deliveries.release([item], clock());
    if (sent === 'over') await parts.deliveries.drop(queue, { seq: delivery.seq, until });
    if (typeof sent === 'string') return;
    // A mail server that refuses one address works.
    receiver.answered(attempt, sent.error === undefined || sent.error === 'smtp_status', nowMs());
    parts.onAttempt(sent.error ?? 'delivered', (performance.now() - started) / 1000);
    await parts.deliveries.record(queue, { seq: delivery.seq, until }, sent);
  }

  /** Makes an attempt. A fault of ours fails it like one of the receiver, so that it does not repeat for ever; a database that is away does not. */
  async function sendingOf(item: Item, reservation: Reservation): Promise<Sent> {
    try {
      return await parts.send(item, (bytes) => reservation.resize(bytes));
    } catch (error) {
      if (store.isUnavailable(error)) throw error;
      parts.onError(error);
      return { error: 'internal_error', statusCode: undefined };
    }
  }

  /** How many deliveries to lease for each due webhook. The webhooks of one receiver share its room, and those of a tenant its leases. */
  function quotasOf(queues: readonly DeliveryQueue[]): DeliveryTake[] {
    const left = new Map<number, number>();
    const quotas: DeliveryTake[] = [];
    // The longest due first, so that no webhook of a receiver or of a tenant starves.
    const byDue = queues.toSorted((one, other) => (one.due_at < other.due_at ? -1 : 1));
    for (const [receiver, own] of Map.groupBy(byDue, receiverOf)) {
      const most = Math.min(receiver.room(nowMs()), room.left);
      const first = own.slice(0, most);
      for (const { webhook, tenant } of first) {
        const wanted = Math.floor(most / first.length);
        const quota = Math.min(wanted, left.get(tenant) ?? room.leftOf(tenant));
        left.set(tenant, (left.get(tenant) ?? room.leftOf(tenant)) - quota);
        if (quota < wanted) short.add(tenant);
        if (quota > 0) quotas.push({ tenant, owner: webhook, quota });
      }
    }
    return quotas;
  }

  return {
    /** Leases due deliveries and starts sending them; returns the milliseconds until the next round. */
    async round(): Promise<number> {
      const now = clock();
      const queues = await store.deliveries.queues();
      for (const { tenant, webhook } of queues.filter(({ gone }) => gone === 1))
        if (await store.deliveries.cancel(tenant, webhook, now)) parts.wake();
      const due = queues.filter(({ gone, active, due_at }) => gone === 0 && active === 1 && due_at <= now.toISOString());
      await claimDue(due, now);
      const wanted = new Set(queues.map(receiverName));
      for (const [name, receiver] of receivers) {
        startWaiting(receiver);
        // Drop receivers without pending deliveries, so that the map does not grow forever.
        if (receiver.isIdle() && !wanted.has(name)) receivers.delete(name);
      }
      const next = queues.filter((queue) => queue.active === 1 && !due.includes(queue)).map(({ due_at }) => Date.parse(due_at));
      return Math.max(1, Math.min(everyMs, ...next.map((moment) => moment - now.getTime())));
    },

    /** Resolves when no attempt is running or about to begin. */
    async idle(): Promise<void> {
      while (running.size + held.size > 0) await (running.size > 0 ? Promise.all(running) : nextTurn());
    },

    /** Starts no more attempts, waits at most `withinMs` for running ones, and releases the leases of unsent deliveries. */
    async stop(withinMs: number): Promise<void> {
      isStopping = true;
      const waiting = [...receivers.values()].flatMap((receiver) => receiver.waiting.splice(0));
      held.clear();
      const late = new Promise<void>((resolve) => setTimeout(resolve, withinMs).unref());
      await Promise.race([this.idle(), late]);
      parts.abort();
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
      const receiver = receiverOf(queue);
      receiver.waiting.push(...own.map((delivery) => ({ delivery, queue, until })));
      if (own.length > 0) room.lease(queue.tenant, own.length);
      if (own.length >= quota) receiver.hasMore = true;
    }
  }
}
