import Type from 'typebox';

import { Failure, object } from '../../kit/schemas.ts';
import { failing } from './common.ts';
import { defineRoute } from './route.ts';

const tag = 'a2a';

/** The agent card, with which clients of A2A find the endpoint. */
export const agentCard = defineRoute({
  id: 'agentCard',
  method: 'GET',
  path: '/.well-known/agent-card.json',
  tag,
  access: 'public',
  summary: 'Agent card (A2A)',
  description: 'What the service offers to clients of A2A 1.0, and where. It contains no data of a tenant.',
  responses: {
    200: { schema: Type.Unknown({ description: 'An agent card of A2A 1.0.' }), description: 'The card.', example: { name: 'Baton' } },
    ...failing(400),
  },
});

/** The endpoint for clients of A2A. */
export const a2a = defineRoute({
  id: 'a2a',
  method: 'POST',
  path: '/a2a',
  tag,
  access: 'any',
  keyInQuery: true,
  forPrograms: true,
  summary: 'A2A 1.0 (JSON-RPC)',
  description: [
    'A request of JSON-RPC 2.0 as A2A 1.0 defines it. A message becomes a packet, and the packet is the task: the agent that completes it answers.',
    'The key is sent in `X-API-Key`, as `Authorization: Bearer`, or in `api_key`. `Host` and `Origin` must name this machine, `SERVICE_HOST` or one of `SERVICE_ALLOWED_HOSTS`.',
    'A refused operation is an error of JSON-RPC with the code of A2A; a request counts as one, however long it waits.',
  ].join('\n\n'),
  query: object({
    api_key: Type.Optional(Type.String({ description: 'An API key, for clients that cannot send headers.' })),
    'A2A-Version': Type.Optional(Type.String({ description: 'The version of A2A, if the client cannot send the header.' })),
  }),
  body: Type.Object(
    {
      jsonrpc: Type.Optional(Type.Unknown()),
      id: Type.Optional(Type.Unknown()),
      method: Type.Optional(Type.Unknown()),
      params: Type.Optional(Type.Unknown()),
    },
    { description: 'A request of JSON-RPC 2.0.' },
  ),
  bodyExample: { jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id: '019ca8bb-b5c0-73e6-bac5-b5d66ec45e54' } },
  headers: {
    Authorization: '`Bearer` and the API key, instead of `X-API-Key`.',
    'A2A-Version': 'The version of A2A: `1.0`. Without it A2A means version 0.3, which the service does not speak.',
    'X-Agent-Id': 'The agent that sends the message. 1 to 255 characters. Optional.',
  },
  responses: {
    200: {
      schema: Type.Unknown({ description: 'A response of JSON-RPC 2.0.' }),
      description: 'The answer: JSON, or server-sent events for a streaming method.',
      example: { jsonrpc: '2.0', id: 1, error: { code: -32001, message: 'There is no packet with this id.' } },
    },
    403: { schema: Failure, description: '`Host` or `Origin` names another machine.' },
    ...failing(401, 413, 415, 429),
  },
});
