import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client, type OAuthClientProvider, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';

import { type RunningProvider, startProvider } from '../../examples/demo-sign-in/provider.ts';
import { Visitor } from '../../examples/demo-sign-in/visitor.ts';
import { freePort } from '../../src/kit/free-port.ts';
import { createHandoff } from '../../src/server.ts';

type Saved = Parameters<NonNullable<OAuthClientProvider['saveTokens']>>[0];
type Registered = Awaited<ReturnType<OAuthClientProvider['clientInformation']>>;

/** What the official client keeps of its registration and its tokens, and where its person goes to agree. */
class Keeper implements OAuthClientProvider {
  readonly redirectUrl: string;
  asked: URL | undefined;
  saved: Saved | undefined;
  #client: Registered;
  #verifier = '';

  constructor(redirectUrl: string) {
    this.redirectUrl = redirectUrl;
  }

  get clientMetadata() {
    return {
      ...{ client_name: 'Tests', redirect_uris: [this.redirectUrl], application_type: 'native' },
      ...{ grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'], token_endpoint_auth_method: 'none' },
    };
  }

  clientInformation(): Registered {
    return this.#client;
  }

  saveClientInformation(client: NonNullable<Registered>): void {
    this.#client = client;
  }

  tokens(): Saved | undefined {
    return this.saved;
  }

  saveTokens(tokens: Saved): void {
    this.saved = tokens;
  }

  redirectToAuthorization(url: URL): void {
    this.asked = url;
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }

  codeVerifier(): string {
    return this.#verifier;
  }
}

/** A service with a certified provider, and the place to which the client's person returns. */
async function start(t: TestContext): Promise<{ address: string; provider: RunningProvider; callback: string }> {
  const port = await freePort();
  const address = `http://127.0.0.1:${port}`;
  const person = { email: 'dana@example.com', name: 'Dana', groups: ['ops'] };
  const provider = await startProvider({ people: new Map([['dana', person]]), service: address });
  t.after(() => provider.stop());
  const handoff = await createHandoff({
    ...{ port, publicUrl: address, oidcIssuer: provider.issuer, oidcGroupsClaim: 'groups' },
    oidcRights: { '*': ['read'], 'idp:ops': ['read', 'work', 'respond'] },
  });
  t.after(() => handoff.stop());
  const server = createServer((_, response) => response.end('You can close this page.'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  return { address, provider, callback: `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback` };
}

test("the official client registers, lets its person sign in, gets a token for /mcp and acts as the person's client", async (t) => {
  const { address, provider, callback } = await start(t);
  const keeper = new Keeper(callback);
  const transport = () => new StreamableHTTPClientTransport(new URL(`${address}/mcp`), { authProvider: keeper });
  const client = () => new Client({ name: 'tests', version: '1.0.0' });
  const first = transport();
  await assert.rejects(client().connect(first), UnauthorizedError);
  const { searchParams } = keeper.asked!;
  assert.equal(keeper.asked!.origin, provider.issuer);
  assert.deepEqual(
    ['resource', 'scope', 'code_challenge_method'].map((name) => searchParams.get(name)),
    [`${address}/mcp`, 'baton:read baton:work offline_access', 'S256'],
  );

  const dana = new Visitor();
  const page = await dana.open(keeper.asked!.href);
  const back = await dana.open(page.url, { method: 'POST', body: new URLSearchParams({ person: 'dana' }) });
  assert.ok(back.url.startsWith(callback), `${back.url} ${await back.answer.text()}`);
  await first.finishAuth(new URL(back.url).searchParams);
  assert.ok(keeper.saved?.access_token);

  const connected = client();
  await connected.connect(transport());
  t.after(() => connected.close());
  const { tools } = await connected.listTools();
  assert.ok(tools.some(({ name }) => name === 'hand_over'));
  const made = await connected.callTool({ name: 'hand_over', arguments: { target_agent: 'resolver', summary: 'Refund order 4711' } });
  assert.notEqual(made.isError, true, JSON.stringify(made));
  const { id } = made.structuredContent as { id: string };
  const history = JSON.stringify(await connected.callTool({ name: 'get_history', arguments: { packet_id: id } }));
  assert.match(history, /dana@example\.com/);
  const stream = await fetch(`${address}/mcp`, {
    headers: { authorization: `Bearer ${keeper.saved!.access_token}`, accept: 'text/event-stream' },
  });
  assert.equal(stream.status, 405, 'a client that asks for a stream goes on without one');
  const elsewhere = await fetch(`${address}/api/v1/packets`, { headers: { authorization: `Bearer ${keeper.saved!.access_token}` } });
  assert.equal(elsewhere.status, 401, 'the token is for /mcp alone');
});

test("the Inspector's command line lets its person sign in by a browser, and calls a tool with the token", async (t) => {
  const { address, provider } = await start(t);
  const launcher = new URL('node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js', import.meta.url);
  const home = mkdtempSync(join(tmpdir(), 'baton-inspector-'));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  const callback = `http://127.0.0.1:${await freePort()}/oauth/callback`;
  const call = [
    '--method',
    'tools/call',
    '--tool-name',
    'hand_over',
    '--tool-arg',
    'target_agent=resolver',
    '--tool-arg',
    'summary=Refund',
  ];
  const args = ['--cli', `${address}/mcp`, '--transport', 'http', '--callback-url', callback, '--format', 'json', ...call];
  // Without a terminal it signs nobody in, unless it may open a browser; there is none, so it prints the address.
  const env = { PATH: '/nowhere', HOME: home, MCP_AUTO_OPEN_ENABLED: 'true', MCP_INSPECTOR_SECRET_STORE: 'memory' };
  const inspector = spawn(process.execPath, [fileURLToPath(launcher), ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => inspector.kill('SIGKILL'));
  let [printed, said] = ['', ''];
  inspector.stdout.on('data', (part) => {
    printed += part;
  });
  const asked = new Promise<string>((resolve, reject) => {
    inspector.stderr.on('data', (part) => {
      said += part;
      const [, url] = /Please navigate to: (\S+)/.exec(said) ?? [];
      if (url !== undefined) resolve(url);
    });
    inspector.on('close', (code) => reject(new Error(`It ended with ${code}: ${said}`)));
  });
  const url = new URL(await asked);
  assert.deepEqual([url.origin, url.searchParams.get('resource')], [provider.issuer, `${address}/mcp`]);
  const ended = once(inspector, 'close');
  const dana = new Visitor();
  const page = await dana.open(url.href);
  const back = await dana.open(page.url, { method: 'POST', body: new URLSearchParams({ person: 'dana' }) });
  assert.ok(back.url.startsWith(callback), back.url);
  const [code] = await ended;
  assert.equal(code, 0, said);
  assert.match(printed, /"summary": ?"Refund"|packet/, printed);
});
