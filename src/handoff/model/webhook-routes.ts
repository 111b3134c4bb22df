import Type from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { IdParams } from '../../kit/schemas.ts';
import { failing, IdempotencyKey, Replayed as ReplayedHeader } from './common.ts';
import { defineRoute } from './route.ts';
import {
  DeadLetterQuery,
  Delivery,
  DeliveryDetail,
  DeliveryQuery,
  Replayed,
  Retried,
  RetryRequest,
  Webhook,
  WebhookPatch,
  WebhookRequest,
} from './webhook.ts';

const id = '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b';
const at = '2026-03-01T09:30:00.000Z';
const webhookExample = {
  id,
  url: 'https://example.com/hooks/handoff',
  events: ['packet.created', 'packet.completed'],
  active: true,
  disabled_reason: null,
  created_at: at,
};
const deliveryExample = {
  id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8d',
  webhook_id: id,
  packet_id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8c',
  event_type: 'packet.created',
  status: 'failed',
  attempts: 1,
  last_error: 'http_status',
  last_status_code: 503,
  next_retry_at: '2026-03-01T09:30:01.040Z',
  delivered_at: null,
  created_at: at,
  updated_at: at,
};
const deadExample = { ...deliveryExample, status: 'dead_letter', attempts: 6, next_retry_at: '2026-03-01T16:35:36.000Z' };
const DeliveryParams = Type.Object({ delivery_id: Type.String({ description: 'The id of the delivery.', example: deadExample.id }) });
const total = { 'X-Total-Count': 'The length of the whole list.' };
const webhook = (description: string) => ({ schema: Webhook, description, example: webhookExample });

/** The routes of webhooks and their deliveries. */
const webhookRoutes = routeTable('webhooks', {
  createWebhook: defineRoute({
    method: 'POST',
    path: '/hooks',
    access: 'manage',
    summary: 'Register a webhook',
    description:
      'Each event is posted to the URL when it happens, as `{type, packet_id, data, timestamp}` with the whole packet in `data`. The raw body is signed: `X-SERVICE-Signature: sha256=<hex HMAC-SHA256>`, and the headers of Standard Webhooks.',
    body: WebhookRequest,
    bodyExample: { url: webhookExample.url, events: webhookExample.events, secret: 'a-secret-of-16-or-more' },
    nullIsAbsent: true,
    headers: IdempotencyKey,
    responses: { 201: { ...webhook('The webhook.'), headers: ReplayedHeader }, ...failing(401, 403, 409, 413, 415, 429) },
  }),
  listWebhooks: defineRoute({
    method: 'GET',
    path: '/hooks',
    access: 'read',
    alternative: 'manage',
    summary: 'List webhooks',
    description: 'The webhooks that are not removed. If the service disabled one, `disabled_reason` says why.',
    responses: {
      200: { schema: Type.Array(Webhook), description: 'The webhooks, oldest first.', example: [webhookExample] },
      ...failing(401, 403, 429),
    },
  }),
  patchWebhook: defineRoute({
    method: 'PATCH',
    path: '/hooks/{id}',
    access: 'manage',
    summary: 'Change a webhook',
    description:
      'Changes the given fields. After a change of secret, deliveries are signed with both secrets for a while, so that the receiver can switch.',
    params: IdParams,
    body: WebhookPatch,
    bodyExample: { active: true },
    responses: { 200: webhook('The updated webhook.'), ...failing(401, 403, 404, 413, 415, 429) },
  }),
  deleteWebhook: defineRoute({
    method: 'DELETE',
    path: '/hooks/{id}',
    access: 'manage',
    summary: 'Remove a webhook',
    description: 'The webhook disappears from lists and receives no more events; its pending deliveries are cancelled.',
    params: IdParams,
    responses: { 204: { description: 'Done.' }, ...failing(401, 403, 404, 429) },
  }),
  pingWebhook: defineRoute({
    method: 'POST',
    path: '/hooks/{id}/ping',
    access: 'manage',
    summary: 'Send a test delivery',
    description: 'Sends an event of type `ping` with `data: {webhook_id}`, recorded, signed and retried like any other.',
    params: IdParams,
    responses: {
      202: {
        schema: Delivery,
        description: 'The delivery.',
        example: { ...deliveryExample, packet_id: null, event_type: 'ping', status: 'pending', attempts: 0, last_error: null },
      },
      ...failing(401, 403, 404, 409, 429),
    },
  }),
  listDeliveries: defineRoute({
    method: 'GET',
    path: '/hooks/{id}/deliveries',
    access: 'read',
    alternative: 'manage',
    summary: "List a webhook's deliveries",
    description: 'Newest first. The deliveries of a removed webhook remain readable.',
    params: IdParams,
    query: DeliveryQuery,
    responses: {
      200: { schema: Type.Array(Delivery), description: 'The deliveries, newest first.', example: [deliveryExample], headers: total },
      ...failing(401, 403, 404, 429),
    },
  }),
  getDelivery: defineRoute({
    method: 'GET',
    path: '/hooks/{id}/deliveries/{delivery_id}',
    access: 'read',
    alternative: 'manage',
    summary: 'Get a delivery and what it sends',
    description: 'The delivery with the exact body that is posted. Timestamp and signatures differ with each attempt and are not stored.',
    params: Type.Object({ ...IdParams.properties, ...DeliveryParams.properties }),
    responses: {
      200: {
        schema: DeliveryDetail,
        description: 'The delivery.',
        example: {
          ...deliveryExample,
          event_id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8e',
          body: `{"type":"packet.created","packet_id":"${deliveryExample.packet_id}","data":{},"timestamp":"${at}"}`,
        },
      },
      ...failing(401, 403, 404, 429),
    },
  }),
  listDeadLetters: defineRoute({
    method: 'GET',
    path: '/hooks/dlq',
    access: 'read',
    alternative: 'manage',
    summary: 'List dead letters',
    description: "Deliveries to any of the tenant's webhooks that have used up their attempts.",
    query: DeadLetterQuery,
    responses: {
      200: { schema: Type.Array(Delivery), description: 'The dead letters, newest first.', example: [deadExample], headers: total },
      ...failing(401, 403, 404, 429),
    },
  }),
  replayDeadLetter: defineRoute({
    method: 'POST',
    path: '/hooks/dlq/{delivery_id}/replay',
    access: 'manage',
    summary: 'Replay a dead letter',
    description: 'Sends the same bytes again immediately, under the same delivery id and with a full set of attempts.',
    params: DeliveryParams,
    responses: {
      200: {
        schema: Replayed,
        description: 'The delivery, pending again.',
        example: { ...deadExample, status: 'pending', attempts: 0, delivery_id: deadExample.id, replayed: true },
      },
      ...failing(401, 403, 404, 409, 429),
    },
  }),
  retryAll: defineRoute({
    method: 'POST',
    path: '/hooks/dlq/retry-all',
    access: 'manage',
    summary: 'Retry failed deliveries',
    description:
      'Retries failed deliveries and dead letters whose `next_retry_at` has passed, oldest first, at most 1,000 per call; each restarts with a full set of attempts.',
    body: RetryRequest,
    bodyOptional: true,
    bodyExample: { since: at },
    nullIsAbsent: true,
    responses: {
      200: { schema: Retried, description: 'How many were retried.', example: { retried: 12, skipped: 0, remaining: 0 } },
      ...failing(401, 403, 404, 413, 415, 429),
    },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const webhookApi = {
  tag: { name: 'webhooks', description: 'Signed callbacks, their deliveries and dead letters.' },
  routes: webhookRoutes,
  schemas: { Webhook, WebhookRequest, WebhookPatch, Delivery, DeliveryDetail, ReplayedDelivery: Replayed, RetryRequest, Retried },
};
