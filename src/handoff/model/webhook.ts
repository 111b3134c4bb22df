import Type, { type Static } from 'typebox';

import { choice, givenTimestamp, Id, object, orNull, paging, timestamp } from '../../kit/schemas.ts';
import * as constants from './constants.ts';

export const { defaultWebhookEvents, webhookEvents, deliveryStatuses } = constants;
export type WebhookEvent = (typeof webhookEvents)[number];
export type DeliveryStatus = (typeof deliveryStatuses)[number];

/** Why the last attempt failed: a stable code, never text from the receiver. */
const deliveryErrors = [
  'timeout',
  'dns_error',
  'connection_refused',
  'connection_reset',
  'tls_error',
  'redirect_refused',
  'address_refused',
  'http_status',
  'smtp_status',
  'not_configured',
  'internal_error',
] as const;
export type DeliveryError = (typeof deliveryErrors)[number];

/** Why the service disabled a webhook: its receiver answered 410, or has failed for too long. */
const disabledReasons = ['gone', 'failing'] as const;
export type DisabledReason = (typeof disabledReasons)[number];

/** A webhook without its secret. */
export const Webhook = object({
  id: Id,
  url: Type.String({ description: 'Where deliveries go.', example: 'https://example.com/hooks/handoff' }),
  events: Type.Array(choice(webhookEvents), { description: 'The event types it is subscribed to.' }),
  active: Type.Boolean({ description: 'Whether events are sent to it.' }),
  disabled_reason: orNull(choice(disabledReasons), 'Why the service disabled it; null when it did not.'),
  created_at: timestamp('When it was registered.'),
});

const url = Type.String({
  maxLength: 2048,
  description: 'An https URL with a public address, without credentials or a fragment.',
});
const events = Type.Array(choice(webhookEvents), {
  minItems: 1,
  maxItems: 100,
  description: 'The event types to subscribe to.',
});
const secret = Type.String({
  minLength: 16,
  maxLength: 1024,
  description:
    'Signs every delivery. It is never shown. Its UTF-8 bytes are the key of `X-SERVICE-Signature`. They are also the key of the signature of Standard Webhooks, unless the secret is `whsec_` followed by that key, 24 to 64 bytes, in base64.',
});

export const WebhookRequest = object({
  url,
  events: Type.Optional({ ...events, description: 'The event types to subscribe to; if left out, all but `packet.overdue`.' }),
  secret,
});
export const WebhookPatch = object({
  url: Type.Optional(url),
  events: Type.Optional(events),
  active: Type.Optional(Type.Boolean({ description: 'Whether events are sent to it.' })),
  secret: Type.Optional({ ...secret, description: 'The new secret. For a day, deliveries carry a signature by the old secret as well.' }),
});

/** An event that is or was to be delivered to a webhook. */
export const Delivery = object({
  id: Id,
  webhook_id: Id,
  packet_id: orNull(Id, 'The packet of the event; null for a test delivery.'),
  event_type: Type.String({ description: 'A webhook event type, or `ping`.', example: 'packet.created' }),
  status: choice(deliveryStatuses, { description: 'The status of the delivery.' }),
  attempts: Type.Integer({ description: 'How many attempts were made.' }),
  last_error: orNull(choice(deliveryErrors), 'Why the last attempt failed.'),
  last_status_code: orNull(Type.Integer(), "The receiver's last HTTP status; null when it sent none."),
  next_retry_at: orNull(timestamp('When it is retried; for a dead letter, from when retry-all includes it.')),
  delivered_at: orNull(timestamp('When the receiver accepted it.')),
  created_at: timestamp('When the event happened.'),
  updated_at: timestamp('When the delivery last changed.'),
});

/** A delivery, and what it sends. */
export const DeliveryDetail = object({
  ...Delivery.properties,
  event_id: Type.String({ format: 'uuid', description: 'The id of the event, which every attempt sends as `webhook-id`.' }),
  body: orNull(
    Type.String(),
    'The exact bytes that every attempt signs and sends; null for a push notification, which is made when it is sent.',
  ),
});

export const Replayed = object({ ...Delivery.properties, delivery_id: Id, replayed: Type.Boolean({ description: 'Always true.' }) });

export const RetryRequest = object({
  webhook_id: Type.Optional(Type.String({ format: 'uuid', description: 'Only deliveries to this webhook.' })),
  force: Type.Optional(Type.Boolean({ description: 'Whether to include deliveries that are not yet due.', default: false })),
  since: Type.Optional(givenTimestamp('Only events at or after this moment.')),
  until: Type.Optional(givenTimestamp('Only events at or before this moment.')),
});
export const Retried = object({
  retried: Type.Integer({ description: 'How many deliveries are retried.' }),
  skipped: Type.Integer({ description: 'How many were skipped because their webhook is inactive.' }),
  remaining: Type.Integer({ description: 'How many more are due, beyond the 1,000 of one call.' }),
});

export const DeliveryQuery = object({
  status: Type.Optional(choice(deliveryStatuses, { description: 'Only deliveries of this status.' })),
  ...paging(),
});
export const DeadLetterQuery = object({
  webhook_id: Type.Optional(Type.String({ description: 'Only deliveries to this webhook.' })),
  ...paging(),
});

export type Webhook = Static<typeof Webhook>;
export type WebhookRequest = Static<typeof WebhookRequest>;
export type WebhookPatch = Static<typeof WebhookPatch>;
export type Delivery = Static<typeof Delivery>;
export type DeliveryDetail = Static<typeof DeliveryDetail>;
export type RetryRequest = Static<typeof RetryRequest>;
export type Retried = Static<typeof Retried>;
