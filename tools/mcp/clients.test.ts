import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createMCPClient } from '@ai-sdk/mcp';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createTaskSessionFromClient, resultFromTaskOutcome } from '@modelcontextprotocol/ext-tasks/client';
import { MCPServerStdio, MCPServerStreamableHttp } from '@openai/agents';

import type { Handoff } from '../../src/handoff/main.ts';
import { apiKey, startService } from './service.ts';

let handoff: Handoff;
let address = '';
const headers = { 'x-api-key': apiKey, 'x-agent-id': 'resolver' };

before(async () => {
  ({ handoff, address } = await startService());
});
after(() => handoff.stop());

const rest = (path: string, body: object) =>
  fetch(`${address}/api/v1${path}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

/** Creates a packet for the agent of the tests; resolves with its id. */
async function handOver(): Promise<string> {
  const agent = { id: 'resolver', name: 'Resolver', framework: 'test' };
  const body = { metadata: { source_agent: agent, target_agent: agent }, context: { summary: 'Refund order 4711' } };
  return ((await (await rest('/packets', body)).json()) as { id: string }).id;
}

const toolNames = [
  'ask_human',
  'claim',
  'claim_next',
  'complete',
  'fail',
  'find_packets',
  'get_answer',
  'get_brief',
  'get_contract',
  'get_history',
];
const cliProgram = fileURLToPath(new URL('../../bin/service-cli.js', import.meta.url));

describe("MCP Inspector's command line", () => {
  const inspector = fileURLToPath(new URL('node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js', import.meta.url));
  const inspect = async (...args: string[]) => {
    const server = [`${address}/mcp`, '--transport', 'http', '--header', `X-API-Key: ${apiKey}`, '--header', 'X-Agent-Id: resolver'];
    const { stdout } = await promisify(execFile)(process.execPath, [inspector, '--cli', ...server, ...args], { timeout: 60_000 });
    return JSON.parse(stdout);
  };

  test('lists the tools without a fault of a schema, and calls one', async () => {
    const { tools } = await inspect('--method', 'tools/list', '--strict');
    assert.deepEqual(
      tools
        .map(({ name }: { name: string }) => name)
        .sort()
        .slice(0, toolNames.length),
      toolNames,
    );
    const id = await handOver();
    const { structuredContent } = await inspect('--method', 'tools/call', '--tool-name', 'claim', '--tool-arg', `packet_id=${id}`);
    assert.equal(structuredContent.status, 'claimed');
  });

  test('lists and reads resources, and lists prompts', async () => {
    const { resources } = await inspect('--method', 'resources/list');
    assert.equal(resources[0].uri, 'inbox://resolver');
    const id = await handOver();
    const { contents } = await inspect('--method', 'resources/read', '--uri', `packet://${id}/brief`);
    assert.match(contents[0].text, /Refund order 4711/);
    assert.equal((await inspect('--method', 'prompts/list')).prompts.length, 2);
  });
});

describe('@openai/agents', () => {
  for (const [name, open] of [
    ['Streamable HTTP', () => new MCPServerStreamableHttp({ url: `${address}/mcp`, requestInit: { headers } })],
    [
      'service-cli mcp over stdio',
      () =>
        new MCPServerStdio({
          command: process.execPath,
          args: [cliProgram, 'mcp', '--agent', 'resolver'],
          env: { PATH: process.env.PATH ?? '', SERVICE_URL: address, SERVICE_API_KEY: apiKey },
        }),
    ],
  ] as const) {
    test(`lists the tools and works on a packet over ${name}`, async () => {
      const server = open();
      await server.connect();
      try {
        assert.ok((await server.listTools()).some((tool) => tool.name === 'claim_next'));
        const id = await handOver();
        const claimed = await server.callToolResult('claim', { packet_id: id });
        assert.equal((claimed.structuredContent as { status: string }).status, 'claimed');
        assert.match(JSON.stringify(await server.callTool('complete', { packet_id: id })), /is completed/);
      } finally {
        await server.close();
      }
    });
  }
});

describe('@ai-sdk/mcp', () => {
  for (const protocolVersionDiscovery of [false, true]) {
    test(`offers the tools to a model and executes them, ${protocolVersionDiscovery ? 'with' : 'without'} discovery of the revision`, async () => {
      const client = await createMCPClient({ transport: { type: 'http', url: `${address}/mcp`, headers }, protocolVersionDiscovery });
      try {
        const tools = await client.tools();
        const id = await handOver();
        const options = { toolCallId: '1', messages: [] } as never;
        const claimed = (await tools.claim!.execute({ packet_id: id } as never, options)) as { structuredContent?: { status: string } };
        assert.equal(claimed.structuredContent?.status, 'claimed', JSON.stringify(claimed));
        const refused = (await tools.claim!.execute({ packet_id: id } as never, options)) as { isError?: boolean };
        assert.equal(refused.isError, true);
      } finally {
        await client.close();
      }
    });
  }
});

describe('@modelcontextprotocol/client', () => {
  const info = { name: 'test-client', version: '1' };
  const open = async (versionNegotiation?: object, capabilities: object = {}) => {
    const client = new Client(info, { capabilities, ...(versionNegotiation === undefined ? {} : { versionNegotiation }) } as never);
    await client.connect(new StreamableHTTPClientTransport(new URL(`${address}/mcp`), { requestInit: { headers } }));
    return client;
  };

  test('validates every result against the schema of its tool, in both revisions', async () => {
    for (const [negotiation, era] of [
      [undefined, 'legacy'],
      [{ mode: 'auto' }, 'modern'],
    ] as const) {
      const client = await open(negotiation);
      assert.equal(client.getProtocolEra(), era);
      await client.listTools();
      const id = await handOver();
      const args = { packet_id: id };
      for (const [name, more] of [
        ['claim', {}],
        ['update', { status: 'in_progress' }],
        ['get_packet', {}],
        ['get_brief', {}],
        ['get_history', {}],
        ['ask_human', { question: 'Refund?', wait_seconds: 0 }],
        ['get_answer', { wait_seconds: 0 }],
      ] as const) {
        const result = await client.callTool({ name, arguments: { ...args, ...more } });
        assert.equal(result.isError ?? false, false, `${name}: ${JSON.stringify(result)}`);
      }
      assert.equal((await client.callTool({ name: 'find_packets', arguments: {} })).isError ?? false, false);
      assert.equal((await client.callTool({ name: 'claim_next', arguments: { target_agent: 'nobody' } })).isError ?? false, false);
      await client.close();
    }
  });

  const protocolVersion = '2026-07-28';
  const clientCapabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
  type Message = { method: string; params: Record<string, string> };

  /** A session of ext-tasks. */
  function taskSession(client: Client) {
    let id = 0;
    return createTaskSessionFromClient(client, {
      endpointId: 'baton',
      v2RequestFraming: { protocolVersion, clientInfo: info, clientCapabilities },
      async rawDispatch(message) {
        const { method, params } = message as Message;
        const name = params.name ?? params.taskId;
        const response = await fetch(`${address}/mcp`, {
          method: 'POST',
          headers: {
            ...headers,
            accept: 'application/json, text/event-stream',
            'content-type': 'application/json',
            'mcp-protocol-version': protocolVersion,
            'mcp-method': method,
            ...(name === undefined ? {} : { 'mcp-name': name }),
          },
          body: JSON.stringify({ jsonrpc: '2.0', id: id++, method, params }),
        });
        const { result, error } = (await response.json()) as { result: never; error: never };
        return error === undefined ? { kind: 'result', result } : { kind: 'error', error };
      },
    });
  }

  test('with ext-tasks waits for the answer of a person as a task', async () => {
    const client = await open({ mode: 'auto' });
    const session = taskSession(client);
    const packetId = await handOver();
    await client.callTool({ name: 'claim', arguments: { packet_id: packetId } });
    const execution = await session.callTool('ask_human', { packet_id: packetId, question: 'Refund 59.90?' });
    const settling = execution.settle();
    await rest(`/packets/${packetId}/respond`, { response: 'Yes', responded_by: 'dana' });
    const result = resultFromTaskOutcome((await settling).outcome) as { structuredContent: Record<string, unknown> };
    assert.equal(result.structuredContent.response, 'Yes');
    await session.close();
    await client.close();
  });
});
