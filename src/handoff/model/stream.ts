import Type, { type Static } from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { choice, object } from '../../kit/schemas.ts';
import { failing } from './common.ts';
import { Failure } from './errors.ts';
import { defineRoute } from './route.ts';

const channels = Type.Optional(
  Type.Array(Type.String(), {
    description:
      'A channel to listen to; may be repeated. `status:<status>`, `packet:<packet_id>` or `agent:<agent_id>`; without one, all events of the tenant.',
    example: ['status:awaiting_human'],
  }),
);
const apiKey = Type.Optional(Type.String({ description: 'An API key, for clients that cannot send the header `X-API-Key`.' }));
const lastEventId = Type.Optional(
  Type.String({ description: 'The id of the last event seen: the events after it are sent first, each once and in order.' }),
);

const query = object({ api_key: apiKey, subscribe: channels, last_event_id: lastEventId });

const eventsExample = [
  'retry: 3000\nid: 41-9f86d081884c\nevent: connected',
  'data: {"connection_id":"0195c2f0-6b1e-7c3a-9d2f-4e5a6b7c8d9e","message":"Connected to all of the tenant\'s events."}\n',
  'id: 42-9f86d081884c\nevent: packet.created',
  'data: {"type":"packet.created","packet_id":"0195c2f0-7a2b-7e4d-8c1f-2a3b4c5d6e7f","data":{},"timestamp":"2026-03-01T09:30:00.000Z"}\n\n',
].join('\n');

/** The routes that answer with a stream. They are mounted at the root, without a method in the generated client. */
export const streamRoutes = routeTable('streams', {
  events: defineRoute({
    method: 'GET',
    path: '/events',
    access: 'read',
    keyInQuery: true,
    summary: 'Listen to events (server-sent events)',
    description: [
      "The tenant's events as they are committed, until the client closes the connection. Each event is `{type, packet_id, data, timestamp}` with the packet's summary after the change in `data`.",
      'The stream sends `connected` `{connection_id, message}`, then the events since `Last-Event-ID`, then new events. `reset` `{reason}` means that the id is `unknown` or `too_old` and the stream starts from now. `ping` `{timestamp}` is sent every 30 seconds.',
      'A client that has more than 1 MiB of unread events is disconnected; it can resume by event id.',
    ].join('\n\n'),
    query,
    headers: {
      'Last-Event-ID': 'The id of the last event seen, as browsers send it when they reconnect. It takes precedence over `last_event_id`.',
    },
    responses: {
      200: { schema: Type.String(), contentType: 'text/event-stream', description: 'The stream.', example: eventsExample },
      ...failing(400, 401, 403, 429, 503),
    },
  }),
  socket: defineRoute({
    method: 'GET',
    path: '/ws',
    access: 'read',
    keyInQuery: true,
    summary: 'Listen to events (WebSocket)',
    description: [
      'The events of `/events` over WebSocket, as text messages: the envelope with `event_id`. The connection starts with all events of the tenant, or with the channels in `subscribe`.',
      'The client may send `{"action": "subscribe" | "unsubscribe" | "ping", "channel": "..."}`, or `"channels": [...]`, with an `id` that is echoed; a `subscribe` may carry `last_event_id`. The first `subscribe` narrows the stream to its channels; after unsubscribing from the last channel the client receives no events until the next `subscribe`.',
      'The service sends `connected`, `subscribed` and `unsubscribed` `{type, channel, channels}`, `reset` `{type, reason}`, `ping` `{type, timestamp}` every 30 seconds with a protocol ping, `pong`, and `error` (the HTTP error body).',
      'Close codes: 1001 the service is stopping, 1003 a binary message, 1007 invalid UTF-8, 1009 a message over 64 KiB, 4001 the key is no longer valid, 4100 too many messages, 4200 too slow, 4201 no pong.',
    ].join('\n\n'),
    query,
    responses: {
      101: { description: 'The connection is upgraded to WebSocket.' },
      403: { schema: Failure, description: 'The API key lacks the scope `read`, or the origin of the page is not allowed to connect.' },
      426: { schema: Failure, description: 'The request is not a WebSocket upgrade (version 13).' },
      ...failing(400, 401, 429, 503),
    },
  }),
});

/** A message that a WebSocket client sends. */
export const SocketRequest = object({
  action: choice(['subscribe', 'unsubscribe', 'ping']),
  channel: Type.Optional(Type.String()),
  channels: Type.Optional(Type.Array(Type.String(), { minItems: 1, maxItems: 100 })),
  id: Type.Optional(Type.Union([Type.String({ maxLength: 255 }), Type.Number()])),
  last_event_id: Type.Optional(Type.String()),
});
export type SocketRequest = Static<typeof SocketRequest>;

/** What the API declares of this noun: see `ApiPart`. */
export const streamApi = {
  tag: { name: 'streams', description: 'Events as they happen. Served at the root.' },
  routes: streamRoutes,
  schemas: {},
};
