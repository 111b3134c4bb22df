import { createMcpHandler, type McpHttpHandler, ProtocolErrorCode, type ServerEvent } from '@modelcontextprotocol/server';
import { readJson } from '../../kit/json.ts';

import type { Scope } from '../model/common.ts';
import { urisOf } from './resources.ts';
import { callTool, createMcpServer, type Extension, type McpDependencies, type RunTool, type ToolCall, takesTasks } from './server.ts';
import type { Session } from './session.ts';
import { mayWait, scopesOf, tools } from './tools.ts';

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
          runTool: authInfo?.extra?.runTool as RunTool | undefined,
          sessionOf: (context) => ({ ...(authInfo!.extra!.session as Session), takesTasks: takesTasks(context) }),
        }),
      // Our own streams send heartbeats.
      { keepAliveMs: 0, ...(bus === undefined ? {} : { bus }) },
    );
  const shared = handlerOn();

  /**
   * Calls a tool that may wait for a minute. The SDK's objects would weigh more than the wait, so the SDK first reads and
   * checks the request, then nothing of it is kept, and at last it writes the result.
   */
  async function answerLater(request: McpHttpRequest): Promise<McpHttpAnswer> {
    let session: Session | undefined;
    const refused = await read(
      // Without the signal, which would keep what listens to it.
      await fetchFrom(shared, { ...request, signal: undefined }, async (_, checked) => {
        session = checked;
        return { content: [] };
      }),
    );
    if (session === undefined) return refused;
    const result = await callTool((request.body as { params: ToolCall }).params, session, parts.refusalOf);
    return read(await fetchFrom(shared, request, async () => result));
  }

  return {
    scopesFor,
    answer: (request) => (isWaiting(request.body) ? answerLater(request) : fetchFrom(shared, request).then(read)),
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

/** Whether a message calls a tool that may wait. */
function isWaiting(body: unknown): boolean {
  const { method, params } = body as { method?: unknown; params?: Parameters<typeof mayWait>[0] };
  return method === 'tools/call' && typeof params === 'object' && params !== null && mayWait(params);
}

function fetchFrom(
  handler: McpHttpHandler,
  { headers, body, session, signal }: Omit<McpHttpRequest, 'signal'> & { signal: AbortSignal | undefined },
  runTool?: RunTool,
): Promise<Response> {
  const passed = Object.entries(headers).filter(
    (header): header is [string, string] => readHeaders.test(header[0]) && typeof header[1] === 'string',
  );
  const request = new Request('http://localhost/mcp', { method: 'POST', headers: passed, ...(signal === undefined ? {} : { signal }) });
  return handler.fetch(request, { parsedBody: body, authInfo: { token: '', clientId: '', scopes: [], extra: { session, runTool } } });
}

async function read(response: Response): Promise<McpHttpAnswer> {
  return {
    status: response.status,
    contentType: response.headers.get('content-type') ?? undefined,
    text: withInvalidParams(await response.text()),
  };
}

/** An error of the SDK for parameters that lack the form of their method: the issues of its schema, under the code for internal errors. */
const formFault = /\{"code":-32603,"message":("\[\\n(?:[^"\\]|\\.)*")\}/;

/** An answer in which parameters of another form than their method takes are invalid parameters, not a failure of the service. */
function withInvalidParams(text: string): string {
  if (text.length > 64 * 1024) return text;
  return text.replace(formFault, (_, issues: string) => {
    const [{ path, message }] = readJson<[{ path: string[]; message: string }]>(readJson(issues));
    return JSON.stringify({ code: ProtocolErrorCode.InvalidParams, message: `${path.join('.')}: ${message}` });
  });
}
