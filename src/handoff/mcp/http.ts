import { createMcpHandler, type McpHttpHandler } from '@modelcontextprotocol/server';

import type { Scope } from '../model/common.ts';
import { createMcpServer, type Extension, type McpDependencies, takesTasks } from './server.ts';
import type { Session } from './session.ts';
import { scopesOf, tools } from './tools.ts';

/** A request to the endpoint, after admission. */
export interface McpHttpRequest {
  /** Headers by lower-case name. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: unknown;
  readonly session: Omit<Session, 'takesTasks' | 'refusalOf'>;
}

/** A complete answer. */
export interface McpHttpAnswer {
  readonly status: number;
  readonly contentType: string | undefined;
  readonly text: string;
}

export interface McpEndpoint {
  /** The scopes each of which suffices for a message; empty where it needs none. */
  scopesFor(body: unknown): readonly Scope[];
  /** Whether a message calls a tool that may wait for longer than clients and proxies do without a sign. */
  waitsForLong(body: unknown): boolean;
  answer(request: McpHttpRequest): Promise<McpHttpAnswer>;
}

/** Headers that the SDK reads. */
const readHeaders = /^(accept|content-type|mcp-.*)$/;

/** Makes the endpoint for MCP over HTTP. It is stateless: each request is served by a server of its own. */
export function createMcpEndpoint(parts: {
  version: string;
  refusalOf: McpDependencies['refusalOf'];
  extension?: Extension | undefined;
}): McpEndpoint {
  const handler = createMcpHandler(
    ({ era, authInfo }) =>
      createMcpServer({
        ...parts,
        era,
        offersEvents: true,
        sessionOf: (context) => ({
          ...(authInfo!.extra!.session as McpHttpRequest['session']),
          refusalOf: parts.refusalOf,
          takesTasks: takesTasks(context),
        }),
      }),
    // Nothing is announced, so the SDK ends each `subscriptions/listen` at once, and sends no heartbeats.
    { keepAliveMs: 0 },
  );

  return {
    scopesFor,
    waitsForLong,
    answer: async (request) => read(await fetchFrom(handler, request)),
  };
}

/** The methods that read, and those that work on packets, besides the calls of tools. */
const scopesOfMethods: Readonly<Record<string, readonly Scope[]>> = {
  'resources/read': ['read'],
  'tasks/get': ['read'],
  'events/poll': ['read'],
  'events/subscribe': ['work'],
  'events/unsubscribe': ['work'],
  'tasks/cancel': ['work'],
};

/** The scopes each of which suffices for a message. */
function scopesFor(body: unknown): readonly Scope[] {
  const { method, params } = body as { method?: unknown; params?: { name?: unknown } | null };
  if (method === 'tools/call') {
    const name = String(params?.name);
    return Object.hasOwn(tools, name) ? scopesOf(tools[name as keyof typeof tools]) : [];
  }
  return Object.hasOwn(scopesOfMethods, String(method)) ? scopesOfMethods[String(method)]! : [];
}

/** Whether a message calls a tool that may wait for an hour. */
function waitsForLong(body: unknown): boolean {
  const { method, params } = body as { method?: unknown; params?: { name?: unknown } | null };
  return method === 'tools/call' && params?.name === ('request_approval' satisfies keyof typeof tools);
}

function fetchFrom(handler: McpHttpHandler, { headers, body, session }: McpHttpRequest): Promise<Response> {
  const passed = Object.entries(headers).filter(
    (header): header is [string, string] => readHeaders.test(header[0]) && typeof header[1] === 'string',
  );
  const request = new Request('http://localhost/mcp', { method: 'POST', headers: passed, signal: session.signal });
  return handler.fetch(request, { parsedBody: body, authInfo: { token: '', clientId: '', scopes: [], extra: { session } } });
}

async function read(response: Response): Promise<McpHttpAnswer> {
  return {
    status: response.status,
    contentType: response.headers.get('content-type') ?? undefined,
    text: await response.text(),
  };
}
