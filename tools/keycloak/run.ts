import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { decodeJwt, decodeProtectedHeader } from 'jose';

import { Visitor } from '../../examples/demo-sign-in/visitor.ts';
import { freePort } from '../../src/kit/free-port.ts';
import { createHandoff } from '../../src/server.ts';

/**
 * `npx node tools/keycloak/run.ts FOLDER`: signs people in at a Keycloak from Maven Central, which is kept in the folder, and prints what
 * its tokens look like. Needs Java 17 and Maven; by hand, for two to five minutes. docs/sign-in.md has when it was run.
 */
const version = process.env.KEYCLOAK_VERSION ?? '26.6.4';
const folder = resolve(process.argv[2] ?? 'keycloak');
const secret = 'a-secret-for-a-provider-on-loopback';
const admin = { username: 'admin', password: 'admin' };
const password = 'a-password-on-loopback';

/** Unpacks the distribution, unless the folder has it. */
function install(): string {
  const home = join(folder, `keycloak-${version}`);
  if (existsSync(home)) return home;
  mkdirSync(folder, { recursive: true });
  const copy = 'org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy';
  const artifact = `org.keycloak:keycloak-quarkus-dist:${version}:tar.gz`;
  execFileSync('mvn', ['-q', '-B', copy, `-Dartifact=${artifact}`, `-DoutputDirectory=${folder}`], { stdio: 'inherit' });
  execFileSync('tar', ['-xzf', join(folder, `keycloak-quarkus-dist-${version}.tar.gz`), '-C', folder]);
  return home;
}

async function json<T>(answer: Response | Promise<Response>): Promise<T> {
  const found = await answer;
  assert.ok(found.ok, `${found.url}: ${found.status} ${found.ok ? '' : await found.text()}`);
  return (await found.json()) as T;
}

/** What an operator sets up in Keycloak, by its administration API. */
async function setUp(keycloak: string, service: string): Promise<void> {
  const token = (
    await json<{ access_token: string }>(
      fetch(`${keycloak}/realms/master/protocol/openid-connect/token`, {
        method: 'POST',
        body: new URLSearchParams({ grant_type: 'password', client_id: 'admin-cli', ...admin }),
      }),
    )
  ).access_token;
  const put = async (path: string, body: unknown, method = 'POST') => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const answer = await fetch(`${keycloak}/admin/realms${path}`, { method, headers, body: JSON.stringify(body) });
    assert.ok(answer.ok, `${path}: ${answer.status} ${answer.ok ? '' : await answer.text()}`);
  };
  const protocol = 'openid-connect';
  const groups = {
    ...{ name: 'groups', protocol, protocolMapper: 'oidc-group-membership-mapper' },
    config: {
      'claim.name': 'groups',
      'full.path': 'false',
      'id.token.claim': 'true',
      'access.token.claim': 'true',
      'userinfo.token.claim': 'true',
    },
  };
  const audience = (of: string) => ({
    ...{ name: 'audience', protocol, protocolMapper: 'oidc-audience-mapper' },
    config: { 'included.custom.audience': of, 'access.token.claim': 'true' },
  });
  await put('', { realm: 'baton', enabled: true, sslRequired: 'none', groups: [{ name: 'ops' }, { name: 'finance' }] });
  for (const name of ['baton:read', 'baton:work'])
    await put('/baton/client-scopes', {
      ...{ name, protocol, attributes: { 'include.in.token.scope': 'true' } },
      protocolMappers: [audience(`${service}/mcp`)],
    });
  await put('/baton/clients', {
    ...{ clientId: 'baton', secret, frontchannelLogout: false, redirectUris: [`${service}/sign-in/callback`], protocolMappers: [groups] },
    attributes: {
      'post.logout.redirect.uris': `${service}/signed-out`,
      'backchannel.logout.url': `${service}/sign-in/back-channel-logout`,
      'backchannel.logout.session.required': 'true',
    },
  });
  await put('/baton/clients', {
    ...{ clientId: 'connector', publicClient: true, directAccessGrantsEnabled: true, redirectUris: ['http://127.0.0.1/*'] },
    ...{ protocolMappers: [groups], optionalClientScopes: ['baton:read', 'baton:work'] },
  });
  for (const [name, own] of [
    ['dana', ['ops']],
    ['eli', ['finance']],
  ] as const)
    await put('/baton/users', {
      ...{
        username: name,
        email: `${name}@example.com`,
        emailVerified: true,
        enabled: true,
        firstName: name,
        lastName: 'Example',
        groups: own,
      },
      credentials: [{ type: 'password', value: password, temporary: false }],
    });
}

/** Signs in with the form of Keycloak. */
async function signIn(visitor: Visitor, service: string, username: string): Promise<string> {
  const { answer } = await visitor.open(`${service}/sign-in?return_to=/console`);
  const action = /<form[^>]+action="([^"]+)"/.exec(await answer.text())?.[1]?.replaceAll('&amp;', '&');
  assert.ok(action, 'the form of the provider');
  const back = await visitor.open(action, { method: 'POST', body: new URLSearchParams({ username, password }) });
  return back.url;
}

/** Signs people in and out, here and at Keycloak. */
async function checkPeople(keycloak: string, service: string): Promise<void> {
  const dana = new Visitor();
  assert.equal(await signIn(dana, service, 'dana'), `${service}/console`);
  const own = await json<{ kind: string; name: string; scopes: string[] }>(dana.call(service, 'GET', '/api/v1/keys/self'));
  assert.deepEqual([own.kind, own.name, own.scopes], ['session', 'dana@example.com', ['read', 'work', 'respond', 'manage']]);
  const eli = new Visitor();
  await signIn(eli, service, 'eli');
  assert.deepEqual((await json<{ scopes: string[] }>(eli.call(service, 'GET', '/api/v1/keys/self'))).scopes, ['read', 'respond']);

  const { url } = await json<{ url: string }>(dana.call(service, 'POST', '/sign-out'));
  const out = await dana.open(url);
  assert.equal(new URL(out.url).pathname, '/signed-out', `after signing out: ${out.url}`);
  assert.equal((await dana.call(service, 'GET', '/api/v1/keys/self')).status, 401);

  // An administrator ends Eli's session at Keycloak, which tells the service.
  const { access_token } = await json<{ access_token: string }>(
    fetch(`${keycloak}/realms/master/protocol/openid-connect/token`, {
      method: 'POST',
      body: new URLSearchParams({ grant_type: 'password', client_id: 'admin-cli', ...admin }),
    }),
  );
  const headers = { authorization: `Bearer ${access_token}` };
  const [found] = await json<{ id: string }[]>(fetch(`${keycloak}/admin/realms/baton/users?username=eli`, { headers }));
  await fetch(`${keycloak}/admin/realms/baton/users/${found!.id}/logout`, { method: 'POST', headers });
  assert.equal((await eli.call(service, 'GET', '/api/v1/keys/self')).status, 401, 'back-channel logout');
}

/** Lists the tools of `/mcp` with a token of Keycloak, and prints it. */
async function checkTokens(keycloak: string, service: string): Promise<void> {
  const given = await json<{ access_token: string }>(
    fetch(`${keycloak}/realms/baton/protocol/openid-connect/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'password',
        client_id: 'connector',
        username: 'dana',
        password,
        scope: 'openid baton:read baton:work',
      }),
    }),
  );
  console.log('\nAn access token of Keycloak:', decodeProtectedHeader(given.access_token), decodeJwt(given.access_token));
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
  const listed = await fetch(`${service}/mcp`, {
    method: 'POST',
    headers: {
      ...{
        authorization: `Bearer ${given.access_token}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      'mcp-protocol-version': '2025-11-25',
    },
    body: JSON.stringify(body),
  });
  assert.equal(listed.status, 200, await listed.text());
  const elsewhere = await fetch(`${service}/api/v1/packets`, { headers: { authorization: `Bearer ${given.access_token}` } });
  assert.equal(elsewhere.status, 401, 'the audience of /mcp alone');
}

async function main(): Promise<void> {
  const home = install();
  const [port, servicePort] = [await freePort(), await freePort()];
  const [keycloak, service] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${servicePort}`];
  const bootstrap = { KC_BOOTSTRAP_ADMIN_USERNAME: admin.username, KC_BOOTSTRAP_ADMIN_PASSWORD: admin.password };
  const child = spawn(join(home, 'bin/kc.sh'), ['start-dev', '--db=dev-mem', `--http-port=${port}`, `--hostname=${keycloak}`], {
    env: { ...process.env, ...bootstrap, JAVA_OPTS_KC_HEAP: '-Xmx768m' },
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
  });
  try {
    for (let tries = 0; ; tries += 1) {
      const isUp = await fetch(`${keycloak}/realms/master`).then(
        ({ ok }) => ok,
        () => false,
      );
      if (isUp) break;
      assert.ok(tries < 240, 'Keycloak does not answer');
      await new Promise((done) => setTimeout(done, 1000));
    }
    await setUp(keycloak, service);
    await using handoff = await createHandoff({
      ...{ port: servicePort, publicUrl: service, oidcIssuer: `${keycloak}/realms/baton`, oidcClientId: 'baton', oidcClientSecret: secret },
      // With offline_access Keycloak ends its own session, and then has nothing to log out.
      oidcScopes: 'openid profile email',
      ...{ oidcGroupsClaim: 'groups', oidcTokenTypes: ['at+jwt', 'JWT'] },
      oidcRights: { '*': ['read', 'respond'], 'idp:ops': ['read', 'work', 'respond', 'manage'] },
    });
    await checkPeople(keycloak, service);
    await checkTokens(keycloak, service);
    console.log(`\nKeycloak ${version}, ${handoff.url}: all as expected, ${new Date().toISOString().slice(0, 10)}.`);
  } finally {
    process.kill(-child.pid!);
  }
}

await main();
