import type { CallOptions, TestAnswer, TestService } from './service.ts';

/** A revision of the Model Context Protocol. */
export type Revision = '2025-11-25' | '2026-07-28';
export const revisions: readonly Revision[] = ['2025-11-25', '2026-07-28'];

interface McpOptions extends Pick<CallOptions, 'key' | 'headers'> {
  revision?: Revision;
  /** The agent in X-Agent-Id; `resolver` by default, none if null. */
  agent?: string | null;
  /** The client declares the Tasks extension. */
  tasks?: boolean;
  /** The query of the request. */
  query?: string;
}

/** The headers and the body of a request of MCP, as a client of that revision sends it. */
export function mcpRequest(
  method: string,
  params: Record<string, unknown> = {},
  { revision = '2026-07-28', agent = 'resolver', tasks = false, headers = {} }: McpOptions = {},
) {
  const isModern = revision === '2026-07-28';
  const extensions = tasks ? { extensions: { 'io.modelcontextprotocol/tasks': {} } } : {};
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': revision,
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': extensions,
  };
  const name = params.name ?? params.uri ?? params.taskId;
  return {
    headers: {
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      'mcp-protocol-version': revision,
      ...(isModern ? { 'mcp-method': method, ...(name === undefined ? {} : { 'mcp-name': String(name) }) } : {}),
      ...(agent === null ? {} : { 'x-agent-id': agent }),
      ...headers,
    },
    body: { jsonrpc: '2.0', id: 1, method, params: isModern ? { ...params, _meta } : params },
  };
}

/** Sends a request of MCP and returns the message that answers it, also from server-sent events. */
export async function mcp(
  service: Pick<TestService, 'call'>,
  method: string,
  params: Record<string, unknown> = {},
  options: McpOptions = {},
): Promise<TestAnswer> {
  const { headers, body } = mcpRequest(method, params, options);
  const { key, query = '' } = options;
  const answer = await service.call('POST', `//mcp${query}`, { headers, body, ...(key === undefined ? {} : { key }) });
  const data = /^data: (.*)$/m.exec(answer.text)?.[1];
  return data === undefined ? answer : { ...answer, body: JSON.parse(data) };
}

/** Calls a tool and returns its result. @throws Error when the answer is an error of the protocol */
export async function callTool(
  service: Pick<TestService, 'call'>,
  name: string,
  args: Record<string, unknown> = {},
  options: McpOptions = {},
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into results of every shape.
): Promise<any> {
  const answer = await mcp(service, 'tools/call', { name, arguments: args }, options);
  if (answer.body?.result === undefined) throw new Error(`${name}: ${answer.status} ${answer.text}`);
  return answer.body.result;
}

/** The messages of JSON-RPC in a stream of server-sent events. */
// biome-ignore lint/suspicious/noExplicitAny: a test looks into messages of every shape.
export async function* messagesOf({ body }: Response): AsyncGenerator<any, void> {
  let text = '';
  for await (const chunk of body!) {
    text += Buffer.from(chunk as Uint8Array).toString();
    for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
      const data = /^data: (.*)$/m.exec(text.slice(0, end))?.[1];
      text = text.slice(end + 2);
      if (data !== undefined) yield JSON.parse(data);
    }
  }
}
