import Type from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { object } from '../../kit/schemas.ts';
import { defineRoute } from './route.ts';
import { jsonRpcFailing, rpcSchemas } from './rpc.ts';

const query = object({
  api_key: Type.Optional(Type.String({ description: 'An API key, for clients that cannot send headers.' })),
  agent_id: Type.Optional(
    Type.String({ minLength: 1, maxLength: 255, description: 'The agent behind the client, if it cannot send `X-Agent-Id`.' }),
  ),
});

/** The endpoint for clients of the Model Context Protocol. */
export const { mcp } = routeTable('mcp', {
  mcp: defineRoute({
    method: 'POST',
    path: '/mcp',
    access: 'any',
    keyInQuery: true,
    forPrograms: true,
    resource: 'mcp',
    summary: 'Model Context Protocol (Streamable HTTP)',
    description: [
      'A message of JSON-RPC 2.0 as the Model Context Protocol defines it, in its revisions 2026-07-28 and 2025-11-25. The server keeps no sessions: any instance answers any request.',
      'The key is sent in `X-API-Key`, as `Authorization: Bearer`, or in `api_key`. `Host` and `Origin` must name this machine, `SERVICE_HOST` or one of `SERVICE_ALLOWED_HOSTS`.',
      'An operation that the service refuses is the result of its tool, with `isError`; a call of a tool counts as one request.',
    ].join('\n\n'),
    query,
    body: Type.Object(
      {
        jsonrpc: Type.Optional(Type.String()),
        id: Type.Optional(Type.Unknown()),
        method: Type.Optional(Type.String()),
        params: Type.Optional(Type.Unknown()),
      },
      { description: 'A message of JSON-RPC 2.0.' },
    ),
    bodyExample: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    headers: {
      Authorization: '`Bearer` and the API key, instead of `X-API-Key`.',
      'X-Agent-Id': 'The agent to record as the actor in history and audit log. 1 to 255 characters. Optional.',
    },
    responses: {
      200: {
        schema: Type.Unknown({ description: 'A message of JSON-RPC 2.0.' }),
        description: 'The answer: JSON, or server-sent events.',
        otherTypes: { 'text/event-stream': 'event: message\ndata: {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}\n\n' },
        example: { jsonrpc: '2.0', id: 1, result: { tools: [] } },
      },
      202: { description: 'A notification was taken.' },
      ...jsonRpcFailing(404, 406, 413, 415),
    },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const mcpApi = {
  tag: { name: 'mcp', description: 'The tools of the service, for clients of the Model Context Protocol. Served at the root.' },
  routes: { mcp },
  schemas: rpcSchemas,
};
