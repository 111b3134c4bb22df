import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';

import { publicUrl, startIssuer } from '../../support/issuer.ts';
import { mcp } from '../../support/mcp.ts';
import { startService, TestClock } from '../../support/service.ts';
import { stores } from '../../support/stores.ts';

// Each test is named by a row of the table in docs/agents.md: what a client expects of `/mcp`, by its published documents.

async function start(t: TestContext) {
  const clock = new TestClock();
  const issuer = await startIssuer(t, clock);
  const service = await startService(t, {
    store: stores[0]!,
    clock,
    settings: {
      SERVICE_OIDC_ISSUER: issuer.issuer,
      SERVICE_PUBLIC_URL: publicUrl,
      SERVICE_OIDC_GROUPS_CLAIM: 'groups',
      SERVICE_OIDC_RIGHTS: '{"*": ["read", "work", "respond"]}',
    },
  });
  const person = { email: 'dana@example.com', email_verified: true, sub: 'dana' };
  const token = (scope: string, more: object = {}, audience = `${publicUrl}/mcp`) =>
    issuer.token(audience, { claims: { scope, ...person, ...more } });
  const listTools = (bearer?: string) =>
    mcp(
      service,
      'tools/list',
      {},
      { key: null, agent: null, ...(bearer === undefined ? {} : { headers: { authorization: `Bearer ${bearer}` } }) },
    );
  const call = (bearer: string, name: string, args: object) =>
    mcp(service, 'tools/call', { name, arguments: args }, { key: null, agent: null, headers: { authorization: `Bearer ${bearer}` } });
  const get = (path: string) => service.call('GET', `/${path}`, { key: null });
  return { clock, issuer, service, token, listTools, call, get };
}

const parameter = (header: unknown, name: string) => new RegExp(`${name}="([^"]*)"`).exec(String(header))?.[1];
const rows: Record<string, (t: TestContext) => Promise<void>> = {
  async 'A 401 leads to the metadata'(t) {
    const { listTools, get, issuer } = await start(t);
    const { status, headers } = await listTools();
    assert.equal(status, 401);
    const address = new URL(parameter(headers['www-authenticate'], 'resource_metadata')!);
    assert.equal(address.origin, publicUrl);
    const { body, headers: answered } = await get(address.pathname);
    assert.deepEqual([body.authorization_servers, body.bearer_methods_supported], [[issuer.issuer], ['header']]);
    assert.equal(answered['access-control-allow-origin'], '*');
  },
  async 'The metadata is where RFC 9728 puts that of a path'(t) {
    const { get } = await start(t);
    const { status, body } = await get('/.well-known/oauth-protected-resource/mcp');
    assert.deepEqual([status, body.resource], [200, `${publicUrl}/mcp`]);
    assert.equal((await get('/.well-known/oauth-protected-resource')).body.resource, publicUrl);
  },
  async 'A token is for the resource that the metadata names'(t) {
    const { token, listTools } = await start(t);
    assert.equal((await listTools(await token('baton:read'))).status, 200);
    assert.equal((await listTools(await token('baton:read', {}, publicUrl))).status, 401);
  },
  async 'All scopes that the metadata lists are safe to request'(t) {
    const { get, listTools } = await start(t);
    const { body } = await get('/.well-known/oauth-protected-resource/mcp');
    assert.deepEqual(body.scopes_supported, ['baton:read', 'baton:work']);
    assert.equal(parameter((await listTools()).headers['www-authenticate'], 'scope'), 'baton:read baton:work');
  },
  async 'An expired token is refused with 401, so that the client refreshes it'(t) {
    const { clock, token, listTools } = await start(t);
    const bearer = await token('baton:read');
    assert.equal((await listTools(bearer)).status, 200);
    clock.turn(361);
    const { status, headers } = await listTools(bearer);
    assert.deepEqual([status, parameter(headers['www-authenticate'], 'error')], [401, 'invalid_token']);
    assert.ok(parameter(headers['www-authenticate'], 'resource_metadata'));
  },
  async 'A scope that is missing is asked for when it is needed'(t) {
    const { token, call } = await start(t);
    const { status, headers } = await call(await token('baton:read'), 'hand_over', { target_agent: 'x', summary: 'On' });
    assert.equal(status, 403);
    assert.deepEqual(
      ['error', 'scope'].map((name) => parameter(headers['www-authenticate'], name)),
      ['insufficient_scope', 'baton:read baton:work'],
    );
  },
  async 'Each person consents, and has an own token'(t) {
    const { token, call } = await start(t);
    const bearer = await token('baton:read baton:work', { client_id: 'claude' });
    const made = await call(bearer, 'hand_over', { target_agent: 'resolver', summary: 'On' });
    assert.equal(made.status, 200, made.text);
    const { body } = await call(bearer, 'get_history', { packet_id: made.body.result.structuredContent.id });
    assert.match(JSON.stringify(body), /agent:claude/);
    assert.match(JSON.stringify(body), /dana@example\.com/);
  },
  async 'Tokens come in the header alone'(t) {
    const { token, service } = await start(t);
    const inAddress = await mcp(service, 'tools/list', {}, { key: null, agent: null, query: `?access_token=${await token('baton:read')}` });
    assert.ok(inAddress.status === 401 || inAddress.status === 400, inAddress.text);
  },
};

for (const [row, run] of Object.entries(rows)) test(`a connector of MCP: ${row}`, run);

test('each row of the table of connectors has its test', () => {
  const guide = readFileSync(new URL('../../../docs/agents.md', import.meta.url), 'utf8');
  const [, table = ''] = /## What connectors expect\n(.*?)\n## /s.exec(guide) ?? [];
  const named = [...table.matchAll(/^\| (?!Expectation|---)([^|]+) \|/gm)].map(([, row]) => row!.trim());
  assert.deepEqual(named, Object.keys(rows));
});
