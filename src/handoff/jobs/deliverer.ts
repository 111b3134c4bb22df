import { eachInTurn, nextTurn, settledWithin } from '../../kit/awaitable.ts';
import type { Clock } from '../../kit/clock.ts';
import type { DeliveryService } from '../service/deliveries.ts';
import type { DeliveryQueue, DeliveryTake } from '../store/delivery-queues.ts';
import type { Store } from '../store/store.ts';
import { AttemptBudget, type Reservation } from './attempt-budget.ts';
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

interface DelivererDependencies {
  store: Store;
  deliveries: DeliveryService;
  clock: Clock;
  send: Send;
  /** Aborts the attempts in progress. */
  abort(): void;
  /** Called with the outcome and the duration of each attempt. */
  onAttempt(outcome: string, seconds: number): void;
  onError: (error: unknown) => void;
  /** Requests another round as soon as possible. */
  wake(): void;
}

/** What identifies the receiver of deliveries: its origin, and for all mails the mail server. */
const receiverName = ({ kind, url }: DeliveryQueue): string => (kind === 'email' ? 'mail server' : new URL(url).origin);

/**
 * Sends pending deliveries to webhooks and channels. Concurrency is limited per receiver and per tenant: a slow or dead receiver gets few attempts and never
 * delays deliveries to others, however many of its own are pending.
 */
export class Deliverer {
  readonly #parts: DelivererDependencies;
  readonly #receivers = new Map<string, Receiver<Item>>();
  readonly #running = new Set<Promise<void>>();
  /** Receivers that wait because a limit over all receivers, or of a tenant, is reached. */
  readonly #blocked = new Set<Receiver<Item>>();
  /** Tenants with due deliveries that were not leased, because they have as many as a tenant may have. */
  readonly #short = new Set<number>();
  /** Deliveries whose attempt was aborted by a stop. */
  readonly #aborted: Item[] = [];
  /** Receivers that wait for the next turn of the event loop. */
  readonly #held = new Set<Receiver<Item>>();
  readonly #budget = new AttemptBudget(() => {
    for (const receiver of [...this.#blocked]) {
      this.#blocked.delete(receiver);
      this.#startWaiting(receiver);
    }
  });
  #begunInTurn = 0;
  #isStopping = false;

  constructor(parts: DelivererDependencies) {
    this.#parts = parts;
  }

  /** Leases due deliveries and starts sending them; returns the milliseconds until the next round. */
  async round(): Promise<number> {
    const now = this.#parts.clock();
    const queues = await this.#parts.store.deliveries.queues(now);
    const gone = queues.filter((queue) => queue.gone === 1);
    let fault: unknown;
    await eachInTurn(gone, async ({ tenant, webhook }) => {
      if (await this.#parts.store.deliveries.cancel(tenant, webhook, now)) this.#parts.wake();
    }).catch((error) => {
      fault = error;
    });
    const active = queues.filter((queue) => queue.gone === 0 && queue.active === 1);
    const due = active.filter(({ due_at }) => due_at <= now.toISOString());
    await this.#claimDue(due, now);
    const wanted = new Set(queues.map(receiverName));
    for (const [name, receiver] of this.#receivers) {
      this.#startWaiting(receiver);
      // Drop receivers without pending deliveries, so that the map does not grow forever.
      if (receiver.isIdle() && !wanted.has(name)) this.#receivers.delete(name);
    }
    // Last, so that it delays nobody, and the round counts as failed: reported in a round that succeeds, it would end its own outage.
    if (fault !== undefined) throw fault;
    const untilDue = active.map(({ due_at }) => Date.parse(due_at) - now.getTime()).filter((ms) => ms > 0);
    return untilDue.reduce((least, ms) => Math.min(least, ms), everyMs);
  }

  /** Resolves when no attempt is running or about to begin. */
  async idle(): Promise<void> {
    while (this.#running.size + this.#held.size > 0) await (this.#running.size > 0 ? Promise.all(this.#running) : nextTurn());
  }

  /** Starts no more attempts, waits at most `withinMs` for running ones, and releases the leases of unsent deliveries. */
  async stop(withinMs: number): Promise<void> {
    this.#isStopping = true;
    const waiting = [...this.#receivers.values()].flatMap((receiver) => receiver.waiting.splice(0));
    this.#held.clear();
    await settledWithin(withinMs, this.idle());
    this.#parts.abort();
    await this.idle();
    await this.#parts.store.deliveries.release([...waiting, ...this.#aborted], this.#parts.clock());
  }

  #receiverOf(queue: DeliveryQueue): Receiver<Item> {
    const name = receiverName(queue);
    let receiver = this.#receivers.get(name);
    if (receiver === undefined) {
      receiver = new Receiver();
      this.#receivers.set(name, receiver);
    }
    return receiver;
  }

  #startWaiting(receiver: Receiver<Item>): void {
    while (!this.#isStopping && receiver.canStart(this.#nowMs())) {
      if (this.#begunInTurn >= beginsPerTurn) {
        this.#held.add(receiver);
        return;
      }
      const next = receiver.waiting.findIndex(({ queue }) => this.#budget.allows(queue.tenant));
      if (next === -1) {
        this.#blocked.add(receiver);
        return;
      }
      const [item] = receiver.waiting.splice(next, 1) as [Item];
      // Too little of the lease is left: the delivery becomes due again when it expires.
      if (item.until.getTime() - this.#nowMs() < neededMs) this.#budget.releaseLease(item.queue.tenant);
      else this.#start(item, receiver);
    }
  }

  /** Counts an attempt that begins in this turn. */
  #countBegin(): void {
    this.#begunInTurn += 1;
    if (this.#begunInTurn > 1) return;
    setImmediate(() => {
      this.#begunInTurn = 0;
      for (const receiver of [...this.#held]) {
        this.#held.delete(receiver);
        this.#startWaiting(receiver);
      }
    });
  }

  #start(item: Item, receiver: Receiver<Item>): void {
    this.#countBegin();
    const attempt = receiver.begin(this.#nowMs());
    const reservation = this.#budget.reserve(item.queue.tenant);
    const ended = this.#attemptOn(item, receiver, attempt, reservation)
      .catch(this.#parts.onError)
      .finally(() => {
        receiver.end(attempt);
        this.#running.delete(ended);
        reservation.release();
        this.#startWaiting(receiver);
        const isShort = this.#short.delete(item.queue.tenant);
        const hasMore = receiver.hasMore && receiver.leasable(this.#nowMs()) > 0;
        if (hasMore) receiver.hasMore = false;
        if (hasMore || isShort) this.#parts.wake();
      });
    this.#running.add(ended);
  }

  async #attemptOn(item: Item, receiver: Receiver<Item>, attempt: Attempt, reservation: Reservation): Promise<void> {
    const { delivery, queue, until } = item;
    const started = performance.now();
    const sent = await this.#sendingOf(item, reservation);
    if (sent === 'aborted') this.#aborted.push(item);
    if (sent === 'paused') await this.#parts.store.deliveries.release([item], this.#parts.clock());
    if (sent === 'over') await this.#parts.deliveries.drop(queue, { seq: delivery.seq, until });
    if (typeof sent === 'string') return;
    // A mail server that refuses one address works.
    receiver.answered(attempt, sent.error === undefined || sent.error === 'smtp_status', this.#nowMs());
    this.#parts.onAttempt(sent.error ?? 'delivered', (performance.now() - started) / 1000);
    await this.#parts.deliveries.record(queue, { seq: delivery.seq, until }, sent);
  }

  /** Makes an attempt. An unexpected error counts as a failure, so that it is not retried for ever. @throws if the database is unavailable */
  async #sendingOf(item: Item, reservation: Reservation): Promise<Sent> {
    try {
      return await this.#parts.send(item, (bytes) => reservation.resize(bytes));
    } catch (error) {
      if (this.#parts.store.isUnavailable(error)) throw error;
      this.#parts.onError(error);
      return { error: 'internal_error', statusCode: undefined };
    }
  }

  /** How many deliveries to lease for each due webhook. Webhooks share the limits of their receiver and of their tenant. */
  #quotasOf(queues: readonly DeliveryQueue[]): DeliveryTake[] {
    const left = new Map<number, number>();
    const quotas: DeliveryTake[] = [];
    // The longest due first, so that no webhook of a receiver or of a tenant starves.
    const byDue = queues.toSorted((one, other) => (one.due_at < other.due_at ? -1 : 1));
    for (const [receiver, own] of Map.groupBy(byDue, (queue) => this.#receiverOf(queue))) {
      const most = Math.min(receiver.leasable(this.#nowMs()), this.#budget.left);
      const first = own.slice(0, most);
      for (const { webhook, tenant, due_at } of first) {
        const wanted = Math.floor(most / first.length);
        const leftOfTenant = left.get(tenant) ?? this.#budget.leftOf(tenant);
        const quota = Math.min(wanted, leftOfTenant);
        left.set(tenant, leftOfTenant - quota);
        if (quota < wanted) this.#short.add(tenant);
        if (quota > 0) quotas.push({ tenant, owner: webhook, quota, from: due_at });
      }
    }
    return quotas;
  }

  /** Leases as many due deliveries as their receivers allow. */
  async #claimDue(due: readonly DeliveryQueue[], now: Date): Promise<void> {
    const quotas = this.#quotasOf(due);
    if (quotas.length === 0) return;
    const until = new Date(now.getTime() + leaseMs);
    const found = await this.#parts.store.deliveries.claim(quotas, now, until);
    const claimed = Map.groupBy(found, ({ webhook }) => webhook);
    const queues = new Map(due.map((queue) => [queue.webhook, queue]));
    for (const { owner, quota } of quotas) {
      const queue = queues.get(owner)!;
      const own = claimed.get(owner) ?? [];
      const receiver = this.#receiverOf(queue);
      receiver.waiting.push(...own.map((delivery) => ({ delivery, queue, until })));
      if (own.length > 0) this.#budget.lease(queue.tenant, own.length);
      if (own.length >= quota) receiver.hasMore = true;
    }
  }

  #nowMs(): number {
    return this.#parts.clock().getTime();
  }
}
