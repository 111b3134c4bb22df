import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { describe, type TestContext, test } from 'node:test';

import { output, refused, startCliBench } from '../../support/cli.ts';
import { cliProgram } from '../../support/cli-program.ts';
import { listenFor } from '../../support/listen.ts';
import { mcpRequest, type Revision, revisions } from '../../support/mcp.ts';
import { adminKey, createPacket } from '../../support/service.ts';

/** Starts `service-cli mcp` and returns a function that sends it a message and resolves with the answer. */
function startMcp(t: TestContext, address: string, args: readonly string[] = ['--agent', 'resolver']) {
  const env = { PATH: process.env.PATH ?? '', SERVICE_URL: address, SERVICE_API_KEY: adminKey };
  const child = spawn(process.execPath, [cliProgram, 'mcp', ...args], { env, stdio: 'pipe' });
  t.after(() => child.kill());
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into messages of every shape.
  const send = async (body: unknown): Promise<any> => {
    child.stdin.write(`${JSON.stringify(body)}\n`);
    return JSON.parse((await lines.next()).value as string);
  };
  const tool = async (name: string, args: Record<string, unknown>, revision: Revision) =>
    (await send(mcpRequest('tools/call', { name, arguments: args }, { revision }).body)).result;
  // It may end before it has read everything.
  child.stdin.on('error', () => undefined);
  const end = () => {
    child.stdin.end();
    return ended;
  };
  return { write: (text: string) => child.stdin.write(text), send, tool, end };
}

const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
};

describe('service-cli mcp', () => {
  for (const revision of revisions) {
    test(`serves the tools over standard input and output in ${revision}, and ends with its input`, async (t) => {
      const bench = await startCliBench(t);
      const { send, tool, end } = startMcp(t, bench.address);
      if (revision === '2025-11-25') assert.equal((await send(initialize)).result.protocolVersion, revision);
      const created = await tool('hand_over', { target_agent: 'resolver', summary: 'Refund' }, revision);
      assert.equal(created.isError, undefined, JSON.stringify(created));
      const { packet } = (await tool('claim_next', { lease_seconds: 60 }, revision)).structuredContent;
      assert.deepEqual([packet.id, packet.claimed_by.agent_id], [created.structuredContent.id, 'resolver']);
      const refusal = await tool('complete', { packet_id: packet.id, lease_token: 'lease_of-another' }, revision);
      assert.match(refusal.content[0].text, /lease.*\(LEASE_LOST\)/s);
      const done = await tool('complete', { packet_id: packet.id }, revision);
      assert.equal(done.structuredContent.status, 'completed');
      assert.equal(await end(), 0);
    });
  }

  test('answers with a sentence while the service cannot be reached', async (t) => {
    const { tool } = startMcp(t, 'http://127.0.0.1:9');
    const { isError, content } = await tool('find_packets', {}, '2026-07-28');
    assert.equal(isError, true);
    assert.match(content[0].text, /could not be reached.*\(SERVICE_UNAVAILABLE\)/);
  });

  const call = (name: string, args: object) => JSON.stringify(mcpRequest('tools/call', { name, arguments: args }).body);
  const inputs: Readonly<Record<string, string>> = {
    'no JSON': 'no JSON\n',
    'half a message': '{"jsonrpc":',
    'a batch': '[]\n',
    NUL: '\0\n',
    'a line of 12 MB': 'x'.repeat(12 * 1024 * 1024),
    'an unknown method': '{"jsonrpc":"2.0","id":2,"method":"nope"}\n',
    'a call that the service does not answer': `${call('claim_next', { wait_seconds: 55 })}\n`,
  };
  for (const [name, input] of Object.entries(inputs))
    test(`ends with its input after ${name}, without waiting for the service`, async (t) => {
      const silent = createServer();
      const asked = once(silent, 'connection');
      const { url } = await listenFor(t, silent);
      const { write, send, end } = startMcp(t, `${url}/api/v1`);
      await send(initialize);
      write(input);
      if (input.includes('wait_seconds')) await asked;
      assert.equal(await end(), 0);
    });
});

describe('service-cli packets brief', () => {
  test('shows a brief as text, as Markdown and as JSON, within the characters', async (t) => {
    const bench = await startCliBench(t);
    const { id } = await createPacket(bench.service, { context: { summary: 'Refund order 4711' } });
    assert.match(await output(bench, 'packets', 'brief', id), new RegExp(`^Packet ${id}\n  summary: Refund order 4711`));
    const rest = await bench.service.call('GET', `/packets/${id}/brief?format=markdown`);
    assert.equal(await output(bench, 'packets', 'brief', id, '--markdown'), rest.text);
    const json = JSON.parse(await output(bench, 'packets', 'brief', id, '--max-chars', '200', '--depth', '0', '--format', 'json'));
    assert.ok(json.chars <= 200);
    refused(await bench.run(['packets', 'brief', id, '--max-chars', '100']), 2, /from 200 to 100000/);
  });
});
