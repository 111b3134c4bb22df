import Type, { type Static } from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { choice, Id, IdParams, name, object, orNull, timestamp } from '../../kit/schemas.ts';
import { failing, IdempotencyKey, Replayed as ReplayedHeader } from './common.ts';
import * as constants from './constants.ts';
import { defineRoute } from './route.ts';
import { Delivery, DeliveryQuery, Webhook } from './webhook.ts';

const { channelKinds, channelEvents } = constants;
export type ChannelKind = (typeof channelKinds)[number];
export type ChannelEvent = (typeof channelEvents)[number];

/** The events that a channel sends by default. */
export const defaultEvents: readonly ChannelEvent[] = ['asked', 'reminded'];

const events = Type.Array(choice(channelEvents), {
  minItems: 1,
  maxItems: 100,
  description:
    'The events it sends: `asked` for a new question, `reminded` for its reminder, `answered` for its answer, `overdue` for a packet that is open at its `due_at`.',
});
const responder =
  'The person whose questions it gets (`hitl.responder`, and steps of policies that ask the person), and in whose name its answer links answer. A group (`group:finance`) gets the steps that ask it, without answer links.';

export const Channel = object({
  id: Id,
  kind: choice(channelKinds, { description: '`email` or `slack`.' }),
  target: Type.String({
    description: 'The mail address; of a Slack URL, which is a secret, the origin and the last four characters.',
    example: 'https://hooks.slack.com/...x9Qz',
  }),
  name: orNull(Type.String(), 'What it is called.'),
  events,
  responder: orNull(Type.String(), `${responder} Null: all questions; the person enters a name.`),
  sign_in: Type.Optional(Type.Literal(true, { description: 'The pages of its links ask for a sign-in; absent if they do not.' })),
  links: Type.Boolean({
    description:
      'Whether its messages have answer links: they do if the key that set its target or responder may answer, or if it has a responder, for whom a key with the scope `manage` makes it act. The links end when that key is revoked, and when the responder leaves.',
  }),
  active: Type.Boolean({ description: 'Whether messages are sent to it.' }),
  disabled_reason: { ...Webhook.properties.disabled_reason },
  created_at: timestamp('When it was created.'),
  warnings: Type.Optional(
    Type.Array(Type.String(), {
      description: 'What it cannot do, and where its links lead if `SERVICE_PUBLIC_URL` is not set, one sentence each; otherwise absent.',
    }),
  ),
});

const target = Type.String({
  minLength: 1,
  maxLength: 2048,
  description: "A mail address, or the https URL of one of Slack's incoming webhooks.",
});

const signIn = Type.Boolean({ description: 'Whether the pages of its links ask for a sign-in. Needs an identity provider.' });

export const ChannelRequest = object({
  kind: choice(channelKinds, { description: '`email` or `slack`.' }),
  target,
  name: Type.Optional(name('What it is called.')),
  events: Type.Optional({ ...events, default: [...defaultEvents] }),
  responder: Type.Optional(name(`${responder} If left out: all questions.`)),
  sign_in: Type.Optional(signIn),
});
export const ChannelPatch = object({
  target: Type.Optional(target),
  name: Type.Optional(orNull(name('What it is called.'))),
  events: Type.Optional(events),
  responder: Type.Optional(orNull(name(responder))),
  sign_in: Type.Optional(signIn),
  active: Type.Optional(Type.Boolean({ description: 'Whether messages are sent to it.' })),
});

const { id: deliveryId, webhook_id: _, event_type: __, ...outcome } = Delivery.properties;

/** A message that is or was to be sent to a channel. */
export const ChannelDelivery = object({
  id: deliveryId,
  channel_id: Id,
  event_type: Type.String({ description: 'The event that it sends: `asked`, `reminded`, `answered` or `test`.', example: 'asked' }),
  ...outcome,
});

export type Channel = Static<typeof Channel>;
export type ChannelRequest = Static<typeof ChannelRequest>;
export type ChannelPatch = Static<typeof ChannelPatch>;
export type ChannelDelivery = Static<typeof ChannelDelivery>;

const id = '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b';
const at = '2026-03-01T09:30:00.000Z';
const channelExample = {
  id,
  kind: 'email',
  target: 'dana@example.com',
  name: 'Dana',
  events: ['asked', 'reminded'],
  responder: null,
  links: true,
  active: true,
  disabled_reason: null,
  created_at: at,
};
const deliveryExample = {
  id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8d',
  channel_id: id,
  event_type: 'asked',
  packet_id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8c',
  status: 'delivered',
  attempts: 1,
  last_error: null,
  last_status_code: 250,
  next_retry_at: null,
  delivered_at: at,
  created_at: at,
  updated_at: at,
};
const channel = (description: string) => ({ schema: Channel, description, example: channelExample });
const delivery = (description: string, example: object) => ({ schema: ChannelDelivery, description, example });
const total = { 'X-Total-Count': 'The length of the whole list.' };

/** The routes of channels and their deliveries. */
const channelRoutes = routeTable('channels', {
  createChannel: defineRoute({
    method: 'POST',
    path: '/channels',
    access: 'manage',
    summary: 'Create a channel',
    description:
      'A channel sends questions to a mail address or to Slack: each message has the question, the start of the summary, the time left and an answer link. Without `SERVICE_PUBLIC_URL` the links start with the origin of this request.',
    body: ChannelRequest,
    bodyExample: { kind: 'email', target: 'dana@example.com', name: 'Dana' },
    nullIsAbsent: true,
    headers: IdempotencyKey,
    responses: { 201: { ...channel('The channel.'), headers: ReplayedHeader }, ...failing(401, 403, 409, 413, 415, 429) },
  }),
  listChannels: defineRoute({
    method: 'GET',
    path: '/channels',
    access: 'read',
    alternative: 'manage',
    summary: 'List channels',
    description: 'The channels that are not removed. If the service disabled one, `disabled_reason` says why.',
    responses: {
      200: { schema: Type.Array(Channel), description: 'The channels, oldest first.', example: [channelExample] },
      ...failing(401, 403, 429),
    },
  }),
  getChannel: defineRoute({
    method: 'GET',
    path: '/channels/{id}',
    access: 'read',
    alternative: 'manage',
    summary: 'Get a channel',
    params: IdParams,
    responses: { 200: channel('The channel.'), ...failing(401, 403, 404, 429) },
  }),
  patchChannel: defineRoute({
    method: 'PATCH',
    path: '/channels/{id}',
    access: 'manage',
    summary: 'Change a channel',
    description: 'Changes the given fields; null removes a name or responder. Answer links that were sent stay valid.',
    params: IdParams,
    body: ChannelPatch,
    bodyExample: { active: true },
    responses: { 200: channel('The changed channel.'), ...failing(401, 403, 404, 413, 415, 429) },
  }),
  deleteChannel: defineRoute({
    method: 'DELETE',
    path: '/channels/{id}',
    access: 'manage',
    summary: 'Remove a channel',
    description: 'It receives no further messages, its pending messages are cancelled, and the answer links sent to it end.',
    params: IdParams,
    responses: { 204: { description: 'Done.' }, ...failing(401, 403, 404, 429) },
  }),
  testChannel: defineRoute({
    method: 'POST',
    path: '/channels/{id}/test',
    access: 'manage',
    summary: 'Send a test message',
    description: 'Sends a message without a question, recorded and retried like any other.',
    params: IdParams,
    responses: {
      202: delivery('The delivery.', {
        ...deliveryExample,
        packet_id: null,
        event_type: 'test',
        status: 'pending',
        attempts: 0,
        last_status_code: null,
        delivered_at: null,
      }),
      ...failing(401, 403, 404, 409, 429),
    },
  }),
  listChannelDeliveries: defineRoute({
    method: 'GET',
    path: '/channels/{id}/deliveries',
    access: 'read',
    alternative: 'manage',
    summary: "List a channel's deliveries",
    description:
      'Newest first. A delivery whose question ended before it was sent is `cancelled`. For mail, `last_status_code` is the reply code of SMTP.',
    params: IdParams,
    query: DeliveryQuery,
    responses: {
      200: {
        schema: Type.Array(ChannelDelivery),
        description: 'The deliveries, newest first.',
        example: [deliveryExample],
        headers: total,
      },
      ...failing(401, 403, 404, 429),
    },
  }),
  replayChannelDelivery: defineRoute({
    method: 'POST',
    path: '/channels/{id}/deliveries/{delivery_id}/replay',
    access: 'manage',
    summary: "Replay a channel's dead letter",
    description: 'Writes the message again from the current packet and sends it, with a full set of attempts.',
    params: Type.Object({
      ...IdParams.properties,
      delivery_id: Type.String({ description: 'The id of the delivery.', example: deliveryExample.id }),
    }),
    responses: {
      202: delivery('The delivery, pending again.', { ...deliveryExample, status: 'pending', attempts: 0 }),
      ...failing(401, 403, 404, 409, 429),
    },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const channelApi = {
  tag: { name: 'channels', description: 'Mail addresses and Slack channels to which the service sends questions.' },
  routes: channelRoutes,
  schemas: { Channel, ChannelRequest, ChannelPatch, ChannelDelivery },
};
