import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse as parseToml } from 'smol-toml';

import { mcpRequest } from './support/mcp.ts';
import { adminKey, startService } from './support/service.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** A server of MCP as clients configure it. */
interface Entry {
  readonly url?: string;
  readonly headers?: Record<string, string>;
  readonly http_headers?: Record<string, string>;
  readonly command?: string;
  readonly args?: readonly string[];
  readonly env?: Record<string, string>;
}

/** The words of a command line, as a shell splits them. */
const wordsOf = (line: string) => [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain!);

/** What `claude mcp add` stores. */
function entryOf(command: string): Entry {
  const words = wordsOf(command);
  const valuesOf = (flag: string) => words.flatMap((word, index) => (word === flag ? [words[index + 1]!] : []));
  const split = (text: string, at: string) => [text.slice(0, text.indexOf(at)), text.slice(text.indexOf(at) + 1).trim()] as const;
  const end = words.indexOf('--');
  if (end === -1) {
    const headers = Object.fromEntries(valuesOf('--header').map((header) => split(header, ':')));
    return { url: words.find((word) => word.startsWith('http:'))!, headers };
  }
  const [program, ...args] = words.slice(end + 1);
  return { command: program!, args, env: Object.fromEntries(valuesOf('--env').map((pair) => split(pair, '='))) };
}

/** The servers that a block of code configures; empty for one of another kind. */
function serversIn(kind: string, text: string): Entry[] {
  if (kind === 'json') {
    const { mcpServers, servers = mcpServers } = JSON.parse(text) as Record<string, Record<string, Entry>>;
    return Object.values(servers ?? {});
  }
  if (kind === 'toml') return Object.values(parseToml(text).mcp_servers as unknown as Record<string, Entry>);
  return text.split('\n').flatMap((line) => (line.startsWith('claude mcp add') ? [entryOf(line)] : []));
}

/** The names of the tools that a server over stdio lists. */
async function toolsOverStdio(t: TestContext, { command, args, env }: Entry, address: string): Promise<string[]> {
  const child = spawn(command!, args!, {
    env: { PATH: process.env.PATH, SERVICE_URL: address, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.after(() => child.kill());
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ask = async (method: string, params: object): Promise<{ result: { tools: { name: string }[]; isError?: boolean } }> => {
    child.stdin.write(`${JSON.stringify(mcpRequest(method, { ...params }).body)}\n`);
    return JSON.parse((await lines.next()).value as string);
  };
  const { result } = await ask('tools/list', {});
  // The service takes the key.
  assert.equal((await ask('tools/call', { name: 'find_packets', arguments: {} })).result.isError, undefined);
  child.stdin.end();
  return result.tools.map(({ name }) => name);
}

/** The names of the tools that a server over HTTP lists. */
async function toolsOverHttp({ url, headers }: Entry): Promise<string[]> {
  const { headers: usual, body } = mcpRequest('tools/list', {}, { agent: null });
  const response = await fetch(url!, { method: 'POST', headers: { ...usual, ...headers }, body: JSON.stringify(body) });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  const { result } = JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text) as { result: { tools: { name: string }[] } };
  return result.tools.map(({ name }) => name);
}

for (const [document, expected] of [
  ['README.md', { http: 1, stdio: 0 }],
  ['docs/agents.md', { http: 4, stdio: 5 }],
] as const) {
  describe(`The configurations of clients of MCP in ${document}`, () => {
    const blocks = [...readFileSync(`${root}/${document}`, 'utf8').matchAll(/^```(sh|text|json|toml)\n(.*?)^```$/gms)];
    const servers = blocks.flatMap(([, kind = '', text = '']) => serversIn(kind, text));
    /** The entry with the address and the key of a service. */
    const filledIn = (entry: Entry, address: string): Entry =>
      JSON.parse(
        JSON.stringify(entry)
          .replaceAll('http://localhost:8080', address)
          .replaceAll('/path/to/baton', root.replace(/\/$/, ''))
          .replace(/"\$\{input:baton-key\}"|"KEY"|"\$SERVICE_API_KEY"/g, JSON.stringify(adminKey)),
      );

    test('connect over HTTP', async (t) => {
      const address = await (await startService(t)).handoff.start();
      const overHttp = servers.filter(({ url }) => url !== undefined);
      assert.equal(overHttp.length, expected.http);
      for (const entry of overHttp.map((each) => filledIn(each, address))) {
        const headers = { ...entry.headers, ...entry.http_headers };
        assert.ok(headers['X-Agent-Id'], JSON.stringify(entry));
        assert.ok((await toolsOverHttp({ ...entry, headers })).includes('claim_next'));
      }
    });

    test('connect over stdio', async (t) => {
      const address = await (await startService(t)).handoff.start();
      const overStdio = servers.filter(({ command }) => command !== undefined);
      assert.equal(overStdio.length, expected.stdio);
      for (const entry of overStdio.map((each) => filledIn(each, address)))
        assert.ok((await toolsOverStdio(t, entry, address)).includes('claim_next'));
    });
  });
}
