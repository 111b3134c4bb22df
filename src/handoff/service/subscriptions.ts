import { createHash, timingSafeEqual } from 'node:crypto';

import { invalid } from '../../kit/errors.ts';
import { readJson } from '../../kit/json.ts';
import type { CallbackFailure, From, Subscribed, SubscribeRefusal, SubscribeRequest, Subscription } from '../model/occurrence.ts';
import { canonicalJson } from '../rules/canonical-json.ts';
import { isSubscribed } from '../rules/occurrence.ts';
import { acts, requireLasting, requireRight } from '../rules/rights.ts';
import { requireSecret, signatureHeaders } from '../rules/signature.ts';
import { type FollowingRow, noChannel, packetOfSubscriptions, type StoredWebhook } from '../store/webhooks.ts';
import { type Caller, provenanceOf } from './authentication.ts';
import type { SendingDependencies } from './dependencies.ts';
import { type OccurrenceService, readAtOnce, trailEventOf } from './occurrences.ts';
import { auditRecord } from './trail.ts';

/** The most subscriptions of a tenant. */
const maxSubscriptions = 100;

/** How long a subscription lasts unless it is refreshed, in milliseconds: the shortest, the usual and the longest time. */
const [shortestMs, usualMs, longestMs] = [60_000, 3_600_000, 24 * 3_600_000];

const maxUrlLength = 2048;

/** Posts to a callback; resolves with its status and the beginning of its answer, or why there is none. */
export type PostToCallback = (request: {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** The tenant's number. */
  readonly owner: number;
}) => Promise<{ readonly status: number; readonly text: string } | { readonly failure: CallbackFailure }>;

interface SubscriptionDependencies extends SendingDependencies {
  occurrences: OccurrenceService;
  post: PostToCallback;
  /** How long deliveries are also signed with the previous secret, in seconds. */
  overlapSeconds: number;
}

/** The id of a subscription: the same for the same caller, address and what is subscribed to, and no permission. */
const idOf = ({ origin }: Caller, url: string, { name, arguments: args }: Subscribed): string =>
  `sub_${createHash('sha256')
    .update(canonicalJson([origin, url, name, args]))
    .digest('hex')
    .slice(0, 32)}`;

/** The headers of a message to the receiver of a subscription. */
export const subscriptionHeaders = (id: string): Record<string, string> => ({ 'x-mcp-subscription-id': id });

const isSame = (one: string, other: string): boolean =>
  timingSafeEqual(createHash('sha256').update(one).digest(), createHash('sha256').update(other).digest());

/** The operations on subscriptions to events of MCP. Their deliveries are those of webhooks. */
export function createSubscriptionService(parts: SubscriptionDependencies) {
  const { store, clock, newId, urlProblem, occurrences, post, overlapSeconds } = parts;

  /** Requires an address that can be sent to, and a secret that signs. @throws ServiceError 400 that names the field */
  async function check({ tenant_number }: Caller, { url, secret }: SubscribeRequest): Promise<void> {
    const parsed = url.length <= maxUrlLength && URL.canParse(url) ? new URL(url) : undefined;
    const isLocal = parsed?.protocol === 'http:' && (parsed.hostname === '127.0.0.1' || parsed.hostname === '[::1]');
    if (parsed === undefined || (parsed.protocol !== 'https:' && !isLocal))
      throw invalid('delivery.url', `delivery.url must be an https URL of at most ${maxUrlLength} characters.`);
    if (parsed.username !== '' || parsed.password !== '' || parsed.hash !== '')
      throw invalid('delivery.url', 'delivery.url must have neither credentials nor a fragment.');
    if (!secret.startsWith('whsec_')) throw invalid('delivery.secret', 'delivery.secret must begin with whsec_.');
    requireSecret(secret);
    const problem = await urlProblem(url, tenant_number);
    if (problem !== undefined) throw invalid('delivery.url', problem);
  }

  /** Asks the callback whether it wants the deliveries; returns why it does not. */
  async function challenge(
    { tenant_number: owner }: Caller,
    id: string,
    { url, secret }: SubscribeRequest,
  ): Promise<CallbackFailure | undefined> {
    const now = clock();
    const nonce = `${newId(now)}${newId(now)}`;
    const body = Buffer.from(JSON.stringify({ type: 'verification', challenge: nonce }));
    const signed = signatureHeaders({ eventId: `msg_verification_${newId(now)}`, body, secrets: [secret], now });
    const answer = await post({ url, body, owner, headers: { ...signed, ...subscriptionHeaders(id) } });
    if ('failure' in answer) return answer.failure;
    if (answer.status >= 500) return 'http_5xx';
    if (answer.status >= 400) return 'http_4xx';
    return answer.status < 300 && echoes(answer.text, nonce) ? undefined : 'challenge_failed';
  }

  function expiryOf(ttlMs: number | null | undefined, now: Date): string {
    // Without an end: a day, which the client reads in the answer.
    const ms = ttlMs === null ? longestMs : Math.min(Math.max(ttlMs ?? usualMs, shortestMs), longestMs);
    return new Date(now.getTime() + ms).toISOString();
  }

  return {
    /** Adds a subscription, or refreshes it. @throws ServiceError 400, 403 */
    async subscribe(
      caller: Caller,
      subscribed: Subscribed,
      { ttlMs, ...request }: SubscribeRequest & From,
    ): Promise<Subscription | { readonly refusal: SubscribeRefusal }> {
      requireRight(caller, acts.subscribe);
      requireRight(caller, acts.pollEvents);
      requireLasting(caller);
      const { url, secret } = request;
      await check(caller, request);
      const { tenant_number: tenant } = caller;
      const start = await occurrences.startOf(tenant, request);
      const name = idOf(caller, url, subscribed);
      const at = clock().toISOString();
      const live = (await store.whole(tenant).webhooks.subscriptions()).filter(({ expires_at }) => expires_at! > at);
      // An address that was verified for the caller is not asked again while it is used.
      if (!live.some((known) => known.url === url && known.key_origin === caller.origin)) {
        const reason = await challenge(caller, name, request);
        if (reason !== undefined) return { refusal: { kind: 'callback', reason } };
      }
      const now = clock();
      const expires_at = expiryOf(ttlMs, now);
      const isAdded = await put(caller, { name, subscribed, url, secret, expires_at, position: start.position }, now);
      if (isAdded === undefined) return { refusal: { kind: 'exhausted', max: maxSubscriptions } };
      const known = isAdded ? undefined : live.find((one) => one.name === name);
      const cursor = known === undefined ? start.position : ((await store.deliveries.settledUpTo(tenant, known.seq)) ?? known.position);
      return { id: name, refreshBefore: expires_at, cursor: String(cursor), truncated: isAdded && start.truncated };
    },

    /** Removes a subscription. Its pending deliveries are cancelled. @returns whether there was one. @throws ServiceError 403 */
    async unsubscribe(caller: Caller, subscribed: Subscribed, url: string): Promise<boolean> {
      requireRight(caller, acts.unsubscribe);
      const now = clock();
      const name = idOf(caller, url, subscribed);
      return store.of(caller).commit({
        tenantId: caller.tenant_id,
        pushesOf: packetOfSubscriptions,
        work({ webhooks, trail }) {
          const stored = webhooks.ofPacket(packetOfSubscriptions).find((one) => one.name === name && one.seq !== 0);
          if (stored === undefined) return false;
          webhooks.remove(stored.id, ended(stored, now));
          trail.audit(auditRecord(caller, 'webhook', 'deleted', { webhook_id: stored.id }), provenanceOf(caller, now));
          return stored.expires_at! > now.toISOString();
        },
      });
    },

    /** Queues the events that have come since for subscriptions of a tenant, and removes those that are over. */
    async follow(tenant: number, following: readonly FollowingRow[]): Promise<void> {
      const now = clock();
      const from = Math.min(...following.map(({ position }) => position));
      const upTo = Math.min(Math.max(...following.map(({ last }) => last)), from + readAtOnce);
      const entries = await store.whole(tenant).trail.packetEvents(from, upTo);
      const events = entries.flatMap((entry) => {
        const event = trailEventOf(entry);
        return event === undefined ? [] : [{ entry, event }];
      });
      await store.whole(tenant).commit({
        webhooks: following.map(({ id }) => id),
        work({ webhooks, deliveries }) {
          for (const { id, position } of following) {
            const stored = webhooks.get(id);
            // Removed, or another instance has queued these events.
            if (stored === undefined || stored.position !== position) continue;
            if (stored.expires_at! <= now.toISOString()) {
              webhooks.remove(id, ended(stored, now));
              continue;
            }
            if (position >= upTo) continue;
            const subscribed = readJson<Subscribed>(stored.subscription!);
            for (const { entry, event } of events) {
              const { id, packet_id, position: at } = entry;
              if (at > position && isSubscribed(subscribed, event))
                deliveries.add({ id, type: subscribed.name, packet_id, position: at, timestamp: now.toISOString() }, stored);
            }
            webhooks.save(id, { ...stored, position: upTo });
          }
        },
      });
    },
  };

  /** Stores a subscription; resolves with whether it is new, undefined when the tenant has too many. */
  function put(caller: Caller, given: GivenSubscription, now: Date): Promise<boolean | undefined> {
    const { subscribed, position, secret, ...rest } = given;
    const at = now.toISOString();
    return store.of(caller).commit({
      tenantId: caller.tenant_id,
      pushesOf: packetOfSubscriptions,
      work({ webhooks, trail }) {
        const known = webhooks.ofPacket(packetOfSubscriptions);
        for (const over of known) if (over.seq !== 0 && over.expires_at! <= at) webhooks.remove(over.id, ended(over, now));
        const live = known.filter(({ expires_at }) => expires_at! > at);
        const stored = live.find((one) => one.name === given.name && one.seq !== 0);
        if (stored !== undefined) {
          const until = new Date(now.getTime() + overlapSeconds * 1000).toISOString();
          const rotated = stored.secret === secret ? {} : { secret, old_secret: stored.secret, old_secret_until: until };
          webhooks.save(stored.id, { ...stored, ...rest, ...rotated, ...working, key_id: caller.key_id, updated_at: at });
          return false;
        }
        if (live.length >= maxSubscriptions) return undefined;
        const id = newId(now);
        const maker = { key_id: caller.key_id, key_origin: caller.origin, subscription: JSON.stringify(subscribed) };
        webhooks.insert({ ...fresh, ...rest, ...maker, id, secret, position, created_at: at, updated_at: at });
        trail.audit(auditRecord(caller, 'webhook', 'created', { webhook_id: id, event: subscribed.name }), provenanceOf(caller, now));
        return true;
      },
    });
  }
}

export type SubscriptionService = ReturnType<typeof createSubscriptionService>;

interface GivenSubscription extends Pick<StoredWebhook, 'url' | 'secret'> {
  readonly name: string;
  readonly subscribed: Subscribed;
  readonly expires_at: string;
  readonly position: number;
}

/** A subscription that is refreshed works, whatever became of it before. */
const working = { active: true, disabled_reason: null, failing_since: null };
const fresh = {
  ...{ ...noChannel, ...working, seq: 0, kind: 'event', events: [], for_packet: packetOfSubscriptions },
  ...{ old_secret: null, old_secret_until: null, removed_at: null },
} satisfies Partial<StoredWebhook>;

const ended = (stored: StoredWebhook, now: Date): StoredWebhook => ({
  ...stored,
  active: false,
  updated_at: now.toISOString(),
  removed_at: now.toISOString(),
});

/** Whether an answer has the challenge. */
function echoes(text: string, nonce: string): boolean {
  try {
    const { challenge } = Object(readJson(text)) as { challenge?: unknown };
    return typeof challenge === 'string' && isSame(challenge, nonce);
  } catch {
    return false;
  }
}
