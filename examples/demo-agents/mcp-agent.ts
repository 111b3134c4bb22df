import type { Packet } from '../../src/client.ts';

/** The part of `@modelcontextprotocol/client` that the agent uses. It is installed beside this file, not in the project, so the compiler can't read its types. */
interface McpClient {
  connect(transport: object): Promise<void>;
  getPrompt(request: { name: string; arguments: object }): Promise<{ messages: { content: { text: string } }[] }>;
  callTool(request: { name: string; arguments: object }): Promise<{
    isError?: boolean;
    content: { text: string }[];
    structuredContent: unknown;
  }>;
  close(): Promise<void>;
}

interface McpModule {
  readonly Client: new (info: object, options: object) => McpClient;
  readonly StreamableHTTPClientTransport: new (url: URL, options: object) => object;
}

/** The failure of a tool's call, or that no packet waits. */
export class ToolError extends Error {}

/** The answer of a person, as the tools return it. */
export interface Answer {
  readonly answered: boolean;
  readonly response: string | null;
  readonly responded_by: string | null;
}

/** A connection by MCP, and its tools that the agent uses. */
export interface McpAgent extends AsyncDisposable {
  /** What the service tells a model to do with its next packet. */
  instructions(agentId: string): Promise<string>;
  /** Claims the agent's next packet with all of the tags. */
  claimNext(agentId: string, tags: readonly string[]): Promise<Packet>;
  begin(held: Packet, decision: object): Promise<void>;
  ask(held: Packet, question: { question: string; reason: string; options: readonly unknown[] }): Promise<Answer>;
  complete(held: Packet, results: readonly object[]): Promise<void>;
}

/** Connects to the service by MCP. @throws when its client is not installed, or the service refuses it */
export async function connectByMcp(origin: string, key: string): Promise<McpAgent> {
  const name = '@modelcontextprotocol/client';
  const { Client, StreamableHTTPClientTransport } = (await import(name)) as McpModule;
  const client = new Client({ name: 'demo', version: '1' }, { versionNegotiation: { mode: 'auto' } });
  await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', origin), { requestInit: { headers: { 'x-api-key': key } } }));

  async function call<T>(tool: string, args: object): Promise<T> {
    const { isError, content, structuredContent } = await client.callTool({ name: tool, arguments: args });
    if (isError === true) throw new ToolError(`${tool}: ${content[0]?.text}`);
    return structuredContent as T;
  }
  /** The arguments of every call for a held packet. */
  const argumentsFor = ({ id, claimed_by, lease }: Packet) => ({
    packet_id: id,
    agent_id: claimed_by?.agent_id,
    lease_token: lease?.token,
  });

  return {
    async instructions(agentId) {
      const { messages } = await client.getPrompt({ name: 'work_on_next', arguments: { agent_id: agentId } });
      return messages[0]!.content.text;
    },
    async claimNext(agentId, tags) {
      const { packet } = await call<{ packet: Packet | null }>('claim_next', {
        agent_id: agentId,
        tags,
        wait_seconds: 30,
        lease_seconds: 600,
      });
      if (packet === null) throw new ToolError(`claim_next: nothing waits for ${agentId}.`);
      return packet;
    },
    begin: (held, decision) => call('update', { ...argumentsFor(held), status: 'in_progress', decisions: [decision] }),
    async ask(held, question) {
      let answer = await call<Answer>('ask_human', { ...argumentsFor(held), ...question });
      while (!answer.answered) answer = await call<Answer>('get_answer', { packet_id: held.id });
      return answer;
    },
    complete: (held, results) => call('complete', { ...argumentsFor(held), actions: { completed: results } }),
    [Symbol.asyncDispose]: () => client.close(),
  };
}
