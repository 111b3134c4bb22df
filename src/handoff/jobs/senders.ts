import type { Clock } from '../../kit/clock.ts';
import { readJson } from '../../kit/json.ts';
import { OutgoingError, type OutgoingFailure, statusFailure } from '../../kit/outgoing/failures.ts';
import type { Outgoing } from '../../kit/outgoing/outgoing.ts';
import { parseTraceparent, type TraceContext } from '../../kit/trace-context.ts';
import type { Subscribed } from '../model/occurrence.ts';
import type { Packet } from '../model/packet.ts';
import { type AttemptOutcome, currentSecrets } from '../rules/delivery.ts';
import { mailOf } from '../rules/mail.ts';
import { acts, hasRight } from '../rules/rights.ts';
import { signatureHeaders } from '../rules/signature.ts';
import { slackOf } from '../rules/slack.ts';
import type { CallerOfOrigin } from '../service/authentication.ts';
import type { NoticeService } from '../service/notices.ts';
import type { OccurrenceService } from '../service/occurrences.ts';
import type { PacketViews } from '../service/packet-views.ts';
import { subscriptionHeaders } from '../service/subscriptions.ts';
import type { ClaimedDelivery, DeliveryQueue } from '../store/delivery-queues.ts';
import type { Store } from '../store/store.ts';
import { type Mailer, MailRefused } from './mail.ts';

/** A leased delivery, its webhook or channel, and the end of its lease. */
export interface Item {
  readonly delivery: ClaimedDelivery;
  readonly queue: DeliveryQueue;
  readonly until: Date;
}

interface SenderDependencies {
  store: Store;
  notices: NoticeService;
  callerOfOrigin: CallerOfOrigin;
  /** The body of a push notification of A2A about a packet, of whose chain `root` is the root. */
  notificationOf: (packet: Packet, root: string) => Promise<Buffer>;
  occurrences: OccurrenceService;
  /** Reads a packet once for all of its push notifications. */
  views: PacketViews;
  outgoing: Outgoing;
  /** Undefined when no mail server is set. */
  mailer: Mailer | undefined;
  clock: Clock;
  userAgent: string;
  /** The timeout of an attempt, in milliseconds. */
  attemptMs: number;
}

/**
 * How an attempt ended: its outcome, or that there was none. `aborted`: the service stops; `removed`: the delivery was removed with
 * its packet; `over`: there is nothing to send any more, or nobody who may get it; `paused`: its webhook or channel is switched off.
 */
export type Sent = AttemptOutcome | 'aborted' | 'removed' | 'over' | 'paused';

/** Makes one attempt. `onSize` is called with the bytes of the message. */
export type Send = (item: Item, onSize: (bytes: number) => void) => Promise<Sent>;

/** The most bytes of an answer's body that are read before the connection is closed. */
const maxAnswerBytes = 64 * 1024;

/** Makes the function that sends a delivery, by the kind of what it goes to. */
export function createSend(parts: SenderDependencies): Send {
  const {
    store,
    notices,
    callerOfOrigin,
    views,
    occurrences,
    notificationOf,
    outgoing,
    mailer,
    clock,
    userAgent,
    attemptMs: timeoutMs,
  } = parts;

  async function post(queue: DeliveryQueue, headers: Record<string, string>, body: Buffer, trace?: TraceContext): Promise<Sent> {
    const common = { 'content-type': 'application/json; charset=utf-8', 'user-agent': userAgent };
    return outcomeOf(async () => {
      // Idempotent: receivers of webhooks recognise a repeat by the delivery id; a push notification is the state of a task.
      const answer = await outgoing.send({
        url: queue.url,
        headers: { ...common, ...headers },
        body,
        timeoutMs,
        maxBytes: maxAnswerBytes,
        idempotent: queue.kind !== 'slack',
        owner: queue.tenant,
        trace,
      });
      const retryAfter = answer.headers['retry-after'];
      return { error: statusFailure(answer.status), statusCode: answer.status, ...(retryAfter === undefined ? {} : { retryAfter }) };
    });
  }

  /** The headers of a delivery to a webhook, with its signatures. */
  function headersOf({ delivery, queue }: Item, body: Buffer): Record<string, string> {
    const now = clock();
    return {
      'x-service-event': delivery.event_type,
      'x-service-delivery': delivery.id,
      'x-service-attempt': String(delivery.attempts + 1),
      ...signatureHeaders({ eventId: delivery.event_id, body, secrets: currentSecrets(queue, now), now }),
    };
  }

  const toWebhook: Send = async (item, onSize) => {
    const { delivery, queue } = item;
    const message = await store.deliveries.message(queue.tenant, delivery.event_id);
    if (message === undefined) return 'removed';
    // Encoded once, for the signatures and the request.
    const body = Buffer.from(message.body);
    onSize(body.length);
    return post(queue, headersOf(item, body), body, parseTraceparent(message.traceparent ?? undefined));
  };

  const toPush: Send = async (item, onSize) => {
    const { delivery, queue } = item;
    const creator = queue.key_origin === null ? undefined : await callerOfOrigin(queue.tenant, queue.key_origin);
    if (creator === undefined || !hasRight(creator, acts.sendPush)) return 'over';
    const view = await views.of(creator, delivery.packet_id!);
    if (view === undefined) return 'removed';
    const body = await notificationOf(view.packet, view.root);
    onSize(body.length);
    // The names of A2A 1.0, sections 4.3.3 and 6.6.
    const { scheme, credentials } = readJson<{ scheme?: string; credentials?: string }>(queue.authentication ?? '{}');
    const authorization = scheme === undefined ? {} : { authorization: `${scheme} ${credentials}` };
    return post(queue, { ...headersOf(item, body), 'x-a2a-notification-token': queue.secret, ...authorization }, body);
  };

  const toSubscriber: Send = async (item, onSize) => {
    const { delivery, queue } = item;
    const { tenant, webhook, expires_at, key_origin, subscription, name } = queue;
    const creator = key_origin === null ? undefined : await callerOfOrigin(tenant, key_origin);
    if (creator === undefined || !hasRight(creator, acts.pollEvents)) return 'over';
    if (subscription === null || name === null || expires_at === null || expires_at <= clock().toISOString()) return 'over';
    const occurrence = await occurrences.ofDelivery(creator, readJson<Subscribed>(subscription), delivery);
    if (occurrence === undefined) return 'over';
    const { position, ...event } = occurrence;
    // A client may keep the cursor: all events up to it were delivered or given up.
    const settled = await store.deliveries.settledUpTo(tenant, webhook);
    const cursor = settled === undefined || settled >= position - 1 ? position : settled;
    const body = Buffer.from(JSON.stringify({ ...event, cursor: String(cursor) }));
    onSize(body.length);
    const sent = await post(queue, { ...headersOf(item, body), ...subscriptionHeaders(name) }, body);
    // The receiver refuses bodies of this size: a repeat would be as long.
    return typeof sent === 'object' && sent.statusCode === 413 ? { ...sent, isFinal: true } : sent;
  };

  const toSlack: Send = async ({ delivery, queue }, onSize) => {
    const notice = await notices.of(queue, delivery);
    if (notice === undefined) return 'over';
    const body = Buffer.from(JSON.stringify(slackOf(notice)));
    onSize(body.length);
    return post(queue, {}, body);
  };

  const toMail: Send = async ({ delivery, queue }, onSize) => {
    if (mailer === undefined) return { error: 'not_configured', statusCode: undefined };
    const notice = await notices.of(queue, delivery);
    if (notice === undefined) return 'over';
    const mail = mailOf(notice);
    onSize(mail.text.length + mail.html.length);
    return outcomeOf(async () => {
      const statusCode = await mailer.send({ ...mail, to: queue.url, id: delivery.id, timeoutMs });
      return { error: undefined, statusCode };
    });
  };

  const senders = { webhook: toWebhook, push: toPush, event: toSubscriber, slack: toSlack, email: toMail };
  return followingChanges(store, (item, onSize) => senders[item.queue.kind](item, onSize));
}

/** Sends to the destination as it is now: it may have been changed, switched off or removed since the delivery was leased. */
const followingChanges =
  (store: Store, send: Send): Send =>
  async (item, onSize) => {
    const current = await store.deliveries.destination(item.queue);
    if (current === undefined) return 'over';
    if (current.active === 0) return 'paused';
    return send({ ...item, queue: { ...item.queue, ...current } }, onSize);
  };

/** The outcome of an attempt, also when it fails. */
async function outcomeOf(attempt: () => Promise<AttemptOutcome>): Promise<Sent> {
  try {
    return await attempt();
  } catch (error) {
    if (error instanceof MailRefused) return { error: 'smtp_status', statusCode: error.code, isFinal: error.isFinal };
    if (!(error instanceof OutgoingError)) throw error;
    return error.failure === 'cancelled' ? 'aborted' : { error: storedFailure(error.failure), statusCode: undefined };
  }
}

/** `send` reads no more of a body than its limit, so it never fails with `too_large`. */
const storedFailure = (failure: Exclude<OutgoingFailure, 'cancelled'>) => (failure === 'too_large' ? 'connection_reset' : failure);
