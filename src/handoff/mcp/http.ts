import { createMcpHandler, type McpHttpHandler, type ServerEvent } from '@modelcontextprotocol/server';

import type { Scope } from '../model/common.ts';
import { urisOf } from './resources.ts';
import { createMcpServer, type Extension, type McpDependencies, takesTasks } from './server.ts';
import type { Session } from './session.ts';
import { scopesOf, tools } from './tools.ts';

/** A request to the endpoint, after admission. */
export interface McpHttpRequest {
  /** Headers by lower-case name. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: unknown;
  readonly session: Omit<Session, 'takesTasks'>;
  readonly signal: AbortSignal;
}

/** A complete answer. */
export interface McpHttpAnswer {
  readonly status: number;
  readonly contentType: string | undefined;
  readonly text: string;
}

/** An answer that goes on until the client disconnects: the changes of resources that it listens to. */
export interface McpSubscription {
  readonly messages: AsyncIterable<Uint8Array>;
  /** Announces what an event on these channels may have changed. Only what the client listens to is sent. */
  readonly changed: (channels: readonly string[]) => void;
  /** Ends the subscription, with its last message. */
  readonly end: () => Promise<void>;
}

export interface McpEndpoint {
  /** The scopes each of which suffices for a message; empty where it needs none. */
  scopesFor(body: unknown): readonly Scope[];
  answer(request: McpHttpRequest): Promise<McpHttpAnswer>;
  /** Opens a subscription; an answer if the request is refused. */
  listen(request: McpHttpRequest): Promise<McpHttpAnswer | McpSubscription>;
}

/** Headers that the SDK reads. */
const readHeaders = /^(accept|content-type|mcp-.*)$/;

/** Makes the endpoint for MCP over HTTP. It is stateless: each request is served by a server of its own. */
export function createMcpEndpoint(parts: {
  version: string;
  refusalOf: McpDependencies['refusalOf'];
  extension?: Extension | undefined;
}): McpEndpoint {
  type Bus = NonNullable<Parameters<typeof createMcpHandler>[1]>['bus'];
  const handlerOn = (bus?: Bus) =>
    createMcpHandler(
      ({ era, authInfo }) =>
        createMcpServer({
          ...parts,
          era,
          subscribe: true,
          sessionOf: (context) => ({ ...(authInfo!.extra!.session as Session), takesTasks: takesTasks(context) }),
        }),
      // Our own streams send heartbeats.
      { keepAliveMs: 0, ...(bus === undefined ? {} : { bus }) },
    );
  const shared = handlerOn();

  return {
    scopesFor,
    answer: async (request) => read(await fetchFrom(shared, request)),
    async listen(request) {
      // Each subscription has its own handler, since the events of a handler go to all of its subscriptions.
      let listener: (event: ServerEvent) => void = () => undefined;
      const send = (event: ServerEvent) => listener(event);
      const handler = handlerOn({
        publish: () => undefined,
        subscribe(added) {
          listener = added;
          return () => {
            listener = () => undefined;
          };
        },
      });
      const response = await fetchFrom(handler, request);
      if (response.body === null || !response.headers.get('content-type')?.startsWith('text/event-stream')) return read(response);
      return {
        messages: response.body,
        changed(channels) {
          for (const uri of urisOf(channels)) send({ kind: 'resource_updated', uri });
        },
        end: () => handler.close(),
      };
    },
  };
}

/** The methods that read, and those that work on packets, besides the calls of tools. */
const scopesOfMethods: Readonly<Record<string, readonly Scope[]>> = {
  'resources/read': ['read'],
  'tasks/get': ['read'],
  'subscriptions/listen': ['read'],
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

function fetchFrom(handler: McpHttpHandler, { headers, body, session, signal }: McpHttpRequest): Promise<Response> {
  const passed = Object.entries(headers).filter(
    (header): header is [string, string] => readHeaders.test(header[0]) && typeof header[1] === 'string',
  );
  const request = new Request('http://localhost/mcp', { method: 'POST', headers: passed, signal });
  return handler.fetch(request, { parsedBody: body, authInfo: { token: '', clientId: '', scopes: [], extra: { session } } });
}

async function read(response: Response): Promise<McpHttpAnswer> {
  return {
    status: response.status,
    contentType: response.headers.get('content-type') ?? undefined,
    text: await response.text(),
  };
}
