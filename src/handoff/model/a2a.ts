import Type from 'typebox';

import { type Route, routeTable } from '../../kit/route.ts';
import { object } from '../../kit/schemas.ts';
import { failing } from './common.ts';
import { defineRoute, type HandoffRoute } from './route.ts';
import { a2aFailing, jsonRpcFailing } from './rpc.ts';

/** A push notification configuration of A2A: a webhook for one packet. */
export interface PushConfig {
  /** Its id, unique within the packet; if it is empty, the service chooses one. */
  readonly id: string;
  readonly url: string;
  /** Signs each notification. It is never shown. */
  readonly token: string;
  /** The value of the header `Authorization`. The credentials are never shown. */
  readonly authentication: { readonly scheme: string; readonly credentials: string } | undefined;
}

const versionInQuery = {
  api_key: Type.Optional(Type.String({ description: 'An API key, for clients that cannot send headers.' })),
  'A2A-Version': Type.Optional(Type.String({ description: 'The version of A2A, if the client cannot send the header.' })),
};
const requestHeaders = {
  Authorization: '`Bearer` and the API key, instead of `X-API-Key`.',
  'A2A-Version': 'The version of A2A: `1.0`. Without it A2A means version 0.3, which the service does not support.',
  'X-Agent-Id': 'The agent that sends the message. 1 to 255 characters. Optional.',
};

/** The agent card, and the endpoint of JSON-RPC. */
export const { agentCard, a2a } = routeTable('a2a', {
  /** The agent card, with which clients of A2A find the endpoint. */
  agentCard: defineRoute({
    method: 'GET',
    path: '/.well-known/agent-card.json',
    access: 'public',
    summary: 'Agent card (A2A)',
    description:
      'What the service offers to clients of A2A 1.0, and where. It contains no data of a tenant. With `If-None-Match` an unchanged card is answered with 304 and no body.',
    headers: { 'If-None-Match': 'The `ETag` that the caller last saw; 304 if the card has not changed since. Optional.' },
    responses: {
      200: {
        schema: Type.Unknown({ description: 'An agent card of A2A 1.0.' }),
        description: 'The card.',
        example: { name: 'Baton' },
        headers: { 'Cache-Control': 'The card may be kept for five minutes.', 'Last-Modified': 'When the service started.' },
      },
      304: { description: 'The card has not changed since.' },
      ...failing(400),
    },
  }),
  /** The endpoint for clients of A2A. */
  a2a: defineRoute({
    method: 'POST',
    path: '/a2a',
    access: 'any',
    keyInQuery: true,
    forPrograms: true,
    summary: 'A2A 1.0 (JSON-RPC)',
    description: [
      'A request of JSON-RPC 2.0 as A2A 1.0 defines it. A message becomes a packet, and the packet is the task: the agent that completes it answers.',
      'The key is sent in `X-API-Key`, as `Authorization: Bearer`, or in `api_key`. `Host` and `Origin` must name this machine, `SERVICE_HOST` or one of `SERVICE_ALLOWED_HOSTS`.',
      'A refused operation is an error of JSON-RPC with the code of A2A; a request counts as one, however long it waits.',
    ].join('\n\n'),
    query: object(versionInQuery),
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
    headers: requestHeaders,
    responses: {
      200: {
        schema: Type.Unknown({ description: 'A response of JSON-RPC 2.0.' }),
        description: 'The answer: JSON, or server-sent events for a streaming method.',
        otherTypes: {
          'text/event-stream': 'data: {"jsonrpc":"2.0","id":1,"result":{"task":{"id":"019ca8bb-b5c0-73e6-bac5-b5d66ec45e54"}}}\n\n',
        },
        example: { jsonrpc: '2.0', id: 1, error: { code: -32001, message: 'There is no packet with this id.' } },
      },
      ...jsonRpcFailing(413, 415),
    },
  }),
});

/** The parts of a request over HTTP+JSON. */
export interface RestInput {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly body: object | undefined;
}

interface RestMethod {
  /** The method of A2A. */
  readonly method: string;
  readonly route: Route & HandoffRoute;
  /** The parameters of the method. */
  readonly params: (input: RestInput) => object;
}

const taskId = '019ca8bb-b5c0-73e6-bac5-b5d66ec45e54';

/** A route of the HTTP+JSON binding (A2A 1.0, section 11). */
function rest(
  method: string,
  [verb, path]: readonly ['GET' | 'POST' | 'DELETE', string],
  summary: string,
  { query = [], body, params }: { query?: readonly string[]; body?: object; params: (input: RestInput) => object },
): RestMethod {
  const text = Type.Optional(Type.String({ description: 'As A2A defines it.' }));
  const given = Object.fromEntries(
    Object.keys(body ?? {}).map((name) => [name, Type.Optional(Type.Unknown({ description: 'As A2A defines it.' }))]),
  );
  const id = `a2a${method}${verb === 'GET' && path.endsWith(':subscribe') ? 'ByGet' : ''}`;
  const isStream = /^SendStreaming|^Subscribe/.test(method);
  const route = defineRoute({
    method: verb,
    path: `/a2a${path}`,
    access: 'any',
    keyInQuery: true,
    forPrograms: true,
    summary: `${summary} (A2A)`,
    description: `\`${method}\` of A2A 1.0 over HTTP+JSON: the same as over JSON-RPC. Errors of A2A have the form of AIP-193.`,
    ...(path.includes('{id}')
      ? {
          params: object({
            id: Type.String({ description: 'The id of the task.', example: taskId }),
            ...(path.includes('{config_id}')
              ? { config_id: Type.String({ description: 'The id of the configuration.', example: 'mine' }) }
              : {}),
          }),
        }
      : {}),
    query: object({ ...versionInQuery, ...Object.fromEntries(query.map((name) => [name, text])) }),
    ...(verb === 'POST'
      ? {
          body: Type.Object(given, { description: `The request of \`${method}\`.` }),
          bodyOptional: body === undefined,
          bodyExample: body ?? {},
        }
      : {}),
    headers: requestHeaders,
    responses: {
      200: {
        schema: isStream ? Type.String() : Type.Unknown({ description: 'A response of A2A 1.0.' }),
        description: isStream ? 'Server-sent events, each with a response of A2A 1.0.' : 'The answer.',
        ...(isStream ? { contentType: 'text/event-stream' } : {}),
        example: isStream
          ? `data: {"task":{"id":"${taskId}"}}\n\n`
          : { id: taskId, contextId: taskId, status: { state: 'TASK_STATE_SUBMITTED' } },
      },
      ...a2aFailing(),
    },
  });
  return { method, route: { id, tag: 'a2a', ...route } as unknown as Route & HandoffRoute, params };
}

const messageExample = {
  message: { messageId: 'message-1', role: 'ROLE_USER', parts: [{ text: 'Refund order 4711' }], metadata: { target_agent: 'resolver' } },
};
const configPath = '/tasks/{id}/pushNotificationConfigs/{config_id}';
const ofConfig = { params: ({ params }: RestInput) => ({ taskId: params.id, id: params.config_id }) };
const ofTask = { params: ({ params }: RestInput) => ({ id: params.id }) };

/** The routes of the HTTP+JSON binding. Paths with a verb stand before the path that they extend, because a 405 is decided by the first that fits. */
export const a2aRestRoutes: readonly RestMethod[] = [
  rest('SendMessage', ['POST', '/message:send'], 'Send a message', { body: messageExample, params: ({ body }) => body ?? {} }),
  rest('SendStreamingMessage', ['POST', '/message:stream'], 'Send a message and follow its task', {
    body: messageExample,
    params: ({ body }) => body ?? {},
  }),
  rest('ListTasks', ['GET', '/tasks'], 'List tasks', {
    query: ['contextId', 'status', 'pageSize', 'pageToken', 'historyLength', 'statusTimestampAfter', 'includeArtifacts'],
    params: ({ query }) => ({ ...query, includeArtifacts: query.includeArtifacts === 'true' }),
  }),
  rest('CancelTask', ['POST', '/tasks/{id}:cancel'], 'Cancel a task', ofTask),
  rest('SubscribeToTask', ['GET', '/tasks/{id}:subscribe'], 'Follow a task', ofTask),
  rest('SubscribeToTask', ['POST', '/tasks/{id}:subscribe'], 'Follow a task', ofTask),
  rest('GetTask', ['GET', '/tasks/{id}'], 'Get a task', {
    query: ['historyLength'],
    params: ({ params, query }) => ({ ...query, id: params.id }),
  }),
  rest('CreateTaskPushNotificationConfig', ['POST', '/tasks/{id}/pushNotificationConfigs'], 'Add a push notification configuration', {
    body: { id: 'mine', url: 'https://example.com/a2a', token: 'a-token-of-16-characters-or-more' },
    params: ({ params, body }) => ({ ...body, taskId: params.id }),
  }),
  rest('ListTaskPushNotificationConfigs', ['GET', '/tasks/{id}/pushNotificationConfigs'], 'List push notification configurations', {
    query: ['pageSize', 'pageToken'],
    params: ({ params }) => ({ taskId: params.id }),
  }),
  rest('GetTaskPushNotificationConfig', ['GET', configPath], 'Get a push notification configuration', ofConfig),
  rest('DeleteTaskPushNotificationConfig', ['DELETE', configPath], 'Delete a push notification configuration', ofConfig),
  rest('GetExtendedAgentCard', ['GET', '/extendedAgentCard'], "Get the agent card with the tenant's agents", { params: () => ({}) }),
];

/** What the API declares of this noun: see `ApiPart`. */
export const a2aApi = {
  tag: { name: 'a2a', description: 'The service as an agent of A2A 1.0. Served at the root.' },
  routes: { agentCard, a2a, ...Object.fromEntries(a2aRestRoutes.map(({ route }) => [route.id, route])) } as Record<string, Route>,
  schemas: {},
};
