import assert from 'node:assert/strict';
import { createServer, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, type TestContext, test } from 'node:test';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';

import { clientId, clientSecret, type ProviderPerson, type RunningProvider, startProvider } from '../../examples/demo-sign-in/provider.ts';
import { Visitor } from '../../examples/demo-sign-in/visitor.ts';
import { freePort } from '../../src/kit/free-port.ts';
import { launchBrowser, withoutBrowser } from '../support/browser.ts';
import { assertPresentable } from '../support/dashboard.ts';
import { openHandoffDatabase } from '../support/databases.ts';
import { packetIn, question } from '../support/life.ts';
import { createRedis, skipWithoutRedis } from '../support/redis.ts';
import { startService, TestClock, type TestService } from '../support/service.ts';
import { stores } from '../support/stores.ts';

const people = new Map<string, ProviderPerson>([
  ['dana', { email: 'dana@example.com', name: 'Dana', groups: ['ops', 'finance'] }],
  ['eli', { email: 'eli@example.com', name: 'Eli', groups: [] }],
]);

interface Started {
  readonly service: TestService;
  readonly provider: RunningProvider;
  readonly clock: TestClock;
  /** Where the service listens. */
  readonly address: string;
}

/** The settings of a service at an address, whose people sign in at the provider. */
const settingsAt = (address: string, { issuer }: RunningProvider) => ({
  SERVICE_PUBLIC_URL: address,
  SERVICE_OIDC_ISSUER: issuer,
  SERVICE_OIDC_CLIENT_ID: clientId,
  SERVICE_OIDC_CLIENT_SECRET: clientSecret,
  SERVICE_OIDC_GROUPS_CLAIM: 'groups',
  SERVICE_OIDC_RIGHTS: '{"*": ["read", "respond"], "idp:ops": ["read", "work", "respond", "manage"]}',
});

/** A service that listens, and a certified provider at which people sign in. */
async function start(
  scope: { after(work: () => unknown): void },
  {
    settings = {},
    store = stores[0]!,
    isDown = false,
  }: { settings?: Record<string, string>; store?: (typeof stores)[number]; isDown?: boolean } = {},
): Promise<Started> {
  const port = await freePort();
  const address = `http://127.0.0.1:${port}`;
  const provider = await startProvider({ people, service: address });
  let isStopped = isDown;
  if (isDown) await provider.stop();
  scope.after(async () => {
    if (!isStopped) await provider.stop();
    isStopped = true;
  });
  const clock = new TestClock(new Date().toISOString());
  const service = await startService(scope as TestContext, {
    store,
    clock,
    settings: { SERVICE_PORT: String(port), ...settingsAt(address, provider), ...settings },
  });
  await service.handoff.start();
  return { service, provider, clock, address };
}

/** What stands before two instances, at one address: a request for a path goes to the instance that `to` says. */
async function startProxy(t: Pick<TestContext, 'after'>, ports: readonly number[], to: (path: string) => number): Promise<string> {
  const proxy = createServer((request, response) => {
    const { method, headers, url = '/' } = request;
    const onward = send({ host: '127.0.0.1', port: ports[to(url.split('?')[0]!)]!, path: url, method: method!, headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.rawHeaders);
      answer.pipe(response);
    });
    response.on('close', () => onward.destroy());
    onward.on('error', () => response.destroy());
    request.pipe(onward);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
}

const self = '/api/v1/keys/self';
const statusOf = async (visitor: Visitor, address: string) => (await visitor.call(address, 'GET', self)).status;

describe('sign-in at a certified provider, in a browser', { skip: withoutBrowser }, () => {
  let browser: Browser;
  let on: Started;
  const afters: (() => unknown)[] = [];
  before(async () => {
    browser = await launchBrowser();
    afters.unshift(() => browser.close());
    on = await start({ after: (work) => void afters.unshift(work) });
  });
  after(async () => {
    for (const work of afters) await work();
  });

  async function open(t: TestContext, path: string, options: BrowserContextOptions = {}): Promise<Page> {
    const context = await browser.newContext({
      viewport: { width: 1280, height: 900 },
      reducedMotion: 'reduce',
      locale: 'en-GB',
      ...options,
    });
    t.after(() => context.close());
    const page = await context.newPage();
    await page.goto(on.address + path);
    return page;
  }
  const choose = (page: Page, name: string) => page.getByRole('button', { name: new RegExp(`^${name}`) }).click();

  test('a person signs in to the console by keyboard, answers in the own name, sees sessions and people, and signs out', async (t) => {
    const { id } = await packetIn(on.service, 'awaiting_human', { hitl: { ...question, options: ['Approve', 'Refuse'] } });
    const page = await open(t, `/console/packets/${id}`);
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
    await assertPresentable(page);
    assert.equal(await page.getByLabel('Key', { exact: true }).isVisible(), false, 'the key is folded away');
    await page.getByRole('link', { name: /^Sign in with 127\.0\.0\.1/ }).focus();
    await page.keyboard.press('Enter');
    await choose(page, 'Dana');
    await page.waitForURL(`**/console/packets/${id}`);
    await page.getByText('as dana@example.com').waitFor();
    assert.equal(await page.getByLabel('Your name').count(), 0);
    await page.getByRole('button', { name: /Approve/ }).click();
    await page.getByRole('button', { name: 'Send answer' }).click();
    await page.getByText('The answer is recorded.').waitFor();
    const { hitl } = (await on.service.call('GET', `/packets/${id}`)).body;
    assert.deepEqual(hitl.answered_by, { name: 'dana@example.com', verified: true, method: 'sign_in', subject: 'dana' });

    const eli = new Visitor();
    await eli.signIn(on.address, 'eli');
    await page.getByRole('link', { name: 'Keys' }).click();
    await page.getByRole('table', { name: 'Sessions' }).getByText('this one').waitFor();
    await assertPresentable(page);
    await page.getByRole('button', { name: 'End the session of eli@example.com' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'End' }).click();
    await page.getByRole('button', { name: 'End the session of eli@example.com' }).waitFor({ state: 'detached' });
    assert.equal(await statusOf(eli, on.address), 401);
    await page.getByRole('button', { name: 'Suspend eli@example.com' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Suspend' }).click();
    await page.getByRole('table', { name: 'People' }).getByText('suspended').waitFor();
    await page.getByRole('button', { name: 'Resume eli@example.com' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Resume' }).click();
    await page.getByRole('table', { name: 'People' }).getByText('suspended').waitFor({ state: 'detached' });

    await page.getByRole('button', { name: 'New key' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('What it is for').fill('agent');
    await dialog.getByLabel('Only as these agents').fill('helper');
    await dialog.getByLabel("Sees only what is its agents' own").check();
    await dialog.getByLabel('Queues').fill('desk');
    await page.keyboard.press('Enter');
    const made = (await page.getByRole('dialog', { name: 'The new key' }).locator('code').textContent()) ?? '';
    const own = (await on.service.call('GET', '/keys/self', { key: made })).body;
    assert.deepEqual([own.sees, own.queues, own.responder, own.scopes.includes('manage')], ['own', ['desk'], null, false]);
    await dialog.getByRole('button', { name: 'Done' }).click();

    await page.getByRole('button', { name: 'Signed in as dana@example.com' }).press('Enter');
    await page.getByText('may: read, work, respond, manage').waitFor();
    await page.getByRole('menuitem', { name: 'Sign out' }).press('Enter');
    await page.getByRole('button', { name: 'Sign out here too' }).click();
    await page.getByRole('heading', { level: 1, name: 'You are signed out' }).waitFor();
    await page.getByRole('link', { name: 'Open the console' }).click();
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
  });

  test('a key still signs in, unless the console is for people who have signed in', async (t) => {
    const page = await open(t, '/console/inbox');
    await page.getByText('Use an API key').click();
    await page.getByLabel('Key', { exact: true }).fill((await on.service.call('POST', '/keys', { body: { name: 'k' } })).body.key);
    await page.keyboard.press('Enter');
    await page.getByText('live', { exact: true }).waitFor();
    const strict = await start(t, { settings: { SERVICE_OIDC_REQUIRED: 'console' } });
    await page.goto(`${strict.address}/console`);
    await page.getByRole('link', { name: /^Sign in with/ }).waitFor();
    assert.equal(await page.getByText('Use an API key').count(), 0);
  });

  test('an answer page without scripts asks for the sign-in, and takes the answer of its person', async (t) => {
    const { id } = await packetIn(on.service, 'awaiting_human', { hitl: { ...question, options: ['Approve', 'Refuse'] } });
    // Links that were made until a person was suspended have ended.
    on.clock.turn(1);
    const { body: link } = await on.service.call('POST', `/packets/${id}/answer-links`, {
      body: { sign_in: true, responder: 'eli@example.com' },
    });
    const page = await open(t, new URL(link.url).pathname, {
      javaScriptEnabled: false,
      viewport: { width: 320, height: 640 },
      colorScheme: 'dark',
    });
    await page.getByRole('heading', { level: 1, name: 'Sign in to see the question' }).waitFor();
    assert.ok(!(await page.content()).includes(question.question));
    await page.getByRole('link', { name: /^Sign in with/ }).click();
    await choose(page, 'Dana');
    await page.getByRole('heading', { level: 1, name: 'The question is for somebody else' }).waitFor();
    await page.getByRole('link', { name: 'Sign in as somebody else' }).click();
    await choose(page, 'Eli');
    // The provider's own step, without scripts.
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText('You answer as eli@example.com.').waitFor();
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByRole('heading', { level: 1, name: 'Your answer is recorded' }).waitFor();
    const { hitl } = (await on.service.call('GET', `/packets/${id}`)).body;
    assert.deepEqual([hitl.answered_by.name, hitl.answered_by.method], ['eli@example.com', 'sign_in']);
  });

  test('a sign-in that one of two instances began is ended by the other, and known to both until either ends it', {
    skip: skipWithoutRedis,
  }, async (t) => {
    const [redis, database] = [await createRedis(), await openHandoffDatabase()];
    await redis.start();
    const afters: (() => unknown)[] = [() => redis.stop(), () => database.drop()];
    t.after(async () => {
      for (const work of afters) await work();
    });
    const scope = { after: (work: unknown) => void afters.unshift(work as () => unknown) };
    const ports = [await freePort(), await freePort()];
    const asked: string[] = [];
    /** The instance for requests of the API and of streams. */
    let next = 0;
    const address = await startProxy(scope as never, ports, (path) => {
      const index = path === '/sign-in' ? 0 : path === '/sign-in/callback' ? 1 : next;
      asked.push(`${index} ${path}`);
      return index;
    });
    const provider = await startProvider({ people, service: address });
    scope.after(() => provider.stop());
    const clock = new TestClock(new Date().toISOString());
    const [first, second] = (await Promise.all(
      ports.map(async (port) => {
        const settings = { ...settingsAt(address, provider), SERVICE_PORT: String(port), SERVICE_REDIS_URL: redis.url };
        const service = await startService(scope as never, { databaseUrl: database.url, clock, settings });
        await service.handoff.start();
        return service;
      }),
    )) as [TestService, TestService];

    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce' });
    t.after(() => context.close());
    const page = await context.newPage();
    await page.goto(`${address}/console/inbox`);
    await page.getByRole('link', { name: /^Sign in with/ }).click();
    await choose(page, 'Dana');
    await page.getByText('live', { exact: true }).waitFor();
    assert.ok(asked.includes('0 /sign-in') && asked.includes('1 /sign-in/callback'), asked.join('\n'));
    // The stream is one of the first instance; the question is asked at the second, and answered there.
    next = 1;
    const { id } = await packetIn(second, 'awaiting_human', { hitl: { ...question, options: ['Approve', 'Refuse'] } });
    await page.getByRole('button', { name: /Approve/ }).click();
    await page.getByRole('button', { name: 'Send answer' }).click();
    await page.getByText('The answer is recorded.').waitFor();
    assert.ok(asked.includes(`1 /console/api/v1/packets/${id}/respond`), asked.join('\n'));
    const { hitl } = (await first.call('GET', `/packets/${id}`)).body;
    assert.deepEqual(hitl.answered_by, { name: 'dana@example.com', verified: true, method: 'sign_in', subject: 'dana' });

    const cookie = (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
    const statuses = () =>
      Promise.all([first, second].map(async ({ call }) => (await call('GET', '/keys/self', { key: null, headers: { cookie } })).status));
    assert.deepEqual(await statuses(), [200, 200]);
    await page.getByRole('button', { name: 'Signed in as dana@example.com' }).press('Enter');
    await page.getByRole('menuitem', { name: 'Sign out' }).press('Enter');
    await page.getByRole('button', { name: 'Sign out here too' }).waitFor();
    assert.ok(asked.includes('1 /sign-out'));
    assert.deepEqual(await statuses(), [401, 401]);
  });

  test('a page of another origin can neither read nor write nor listen with the session of its visitor', async (t) => {
    const page = await open(t, '/console/inbox');
    await page.getByRole('link', { name: /^Sign in with/ }).click();
    await choose(page, 'Dana');
    await page.getByText('live', { exact: true }).waitFor();
    const foreign = createServer((_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<title>Foreign</title>'));
    await new Promise<void>((resolve) => foreign.listen(0, '127.0.0.1', resolve));
    t.after(() => foreign.close());
    // The same site, another origin, to which browsers send the cookie.
    await page.goto(`http://127.0.0.1:${(foreign.address() as AddressInfo).port}/`);
    const before = (await on.service.call('GET', '/packets?limit=1')).body.total;
    const tried = await page.evaluate<string[]>(`(async () => {
      const base = ${JSON.stringify(on.address)};
      const attempt = (path, options) => fetch(base + path, { credentials: 'include', ...options }).then(({ status, type }) => type + ' ' + status, () => 'blocked');
      const body = ${JSON.stringify(JSON.stringify({ metadata: { source_agent: { id: 'a', name: 'a', framework: 'x' }, target_agent: { id: 'b', name: 'b' } }, context: { summary: 's' } }))};
      const socket = await new Promise((resolve) => {
        const one = new WebSocket(base.replace('http', 'ws') + '/ws');
        one.onopen = () => resolve('open');
        one.onerror = () => resolve('refused');
      });
      return [
        await attempt('/api/v1/packets'),
        await attempt('/api/v1/packets', { method: 'POST', body, headers: { 'content-type': 'application/json', 'x-requested-with': 'baton' } }),
        await attempt('/api/v1/packets', { method: 'POST', mode: 'no-cors', body: new Blob([body], { type: 'text/plain' }) }),
        await attempt('/sign-out', { method: 'POST', mode: 'no-cors' }),
        await attempt('/events'),
        socket,
      ];
    })()`);
    assert.deepEqual(tried, ['blocked', 'blocked', 'opaque 0', 'opaque 0', 'blocked', 'refused']);
    assert.equal((await on.service.call('GET', '/packets?limit=1')).body.total, before);
    await page.goto(`${on.address}/console/inbox`);
    await page.getByText('live', { exact: true }).waitFor();
  });
});

/** Signs a visitor out at the provider, which ends the session here by its request to the service. */
async function leave(visitor: Visitor, address: string, { issuer }: RunningProvider): Promise<void> {
  assert.equal(await statusOf(visitor, address), 200);
  const asked = await visitor.open(`${issuer}/session/end?client_id=${clientId}`);
  const page = await asked.answer.text();
  const xsrf = /name="xsrf" value="([^"]+)"/.exec(page)?.[1] ?? '';
  const ended = await visitor.open(`${issuer}/session/end/confirm`, { method: 'POST', body: new URLSearchParams({ xsrf, logout: 'yes' }) });
  assert.ok(ended.answer.status < 400, page);
  assert.equal(await statusOf(visitor, address), 401);
}

describe('sign-in at a certified provider', () => {
  for (const [name, seconds] of [
    ['two minutes behind', 120],
    ['two minutes ahead', -120],
  ] as const)
    test(`signs people in and out when the provider's clock is ${name}`, async (t) => {
      const { provider, clock, address } = await start(t);
      clock.turn(seconds);
      const dana = new Visitor();
      assert.equal((await dana.signIn(address, 'dana')).answer.status, 200);
      await leave(dana, address, provider);
    });

  test('begins when the provider comes, and goes on with other keys', async (t) => {
    const { service, provider, clock, address } = await start(t, { isDown: true });
    const dana = new Visitor();
    assert.equal((await dana.signIn(address, 'dana')).answer.status, 503);
    assert.equal((await service.call('GET', '//ready', { key: null })).status, 200);
    await provider.restart();
    t.after(() => provider.stop());
    clock.turn(6);
    assert.equal((await dana.signIn(address, 'dana')).answer.status, 200);
    assert.equal(await statusOf(dana, address), 200);
    // All keys and sessions of the provider are others now: sessions here go on until they are checked.
    await provider.restart();
    clock.turn(61);
    const eli = new Visitor();
    assert.equal((await eli.signIn(address, 'eli')).answer.status, 200);
    assert.equal(await statusOf(eli, address), 200);
    assert.equal(await statusOf(dana, address), 200);
    clock.turn(15 * 60);
    assert.equal(await statusOf(dana, address), 401, 'the provider no longer takes the refresh token');
  });

  test('takes each answer of the provider once, from the browser that began the sign-in', async (t) => {
    const { address } = await start(t);
    const [dana, other] = [new Visitor(), new Visitor()];
    await dana.signIn(address, 'dana');
    const callback = dana.visited.find((url) => url.startsWith(`${address}/sign-in/callback`))!;
    assert.equal((await dana.request(callback)).status, 400, 'the code again');
    assert.equal((await other.request(callback)).status, 400, 'another browser');
    await other.signIn(address, 'eli');
    const [mine, theirs] = [callback, other.visited.findLast((url) => url.startsWith(`${address}/sign-in/callback`))!].map(
      (url) => new URL(url),
    );
    const mixed = new URL(mine!);
    mixed.searchParams.set('code', theirs!.searchParams.get('code')!);
    assert.equal((await dana.request(mixed.href)).status, 400, 'the code of another sign-in');
    assert.ok(
      ![...dana.visited, ...other.visited].some((url) => /[?&#](access_token|id_token|refresh_token)=/.test(url)),
      'no token in an address',
    );
  });

  for (const store of stores)
    test(`loses a person, and what a person lost, within 15 minutes, and ends by back-channel logout, on ${store.name}`, async (t) => {
      const { provider, clock, address } = await start(t, { store });
      const leaving = new Visitor();
      await leaving.signIn(address, 'dana');
      await leave(leaving, address, provider);

      const [dana, eli] = [new Visitor(), new Visitor()];
      for (const [visitor, name] of [
        [dana, 'dana'],
        [eli, 'eli'],
      ] as const)
        await visitor.signIn(address, name);
      const scopesOf = async (visitor: Visitor) =>
        ((await (await visitor.call(address, 'GET', self)).json()) as { scopes: string[] }).scopes;
      assert.ok((await scopesOf(dana)).includes('manage'));
      provider.people.set('dana', { ...people.get('dana')!, groups: [] });
      clock.turn(15 * 60);
      assert.deepEqual(await scopesOf(dana), ['read', 'respond']);
      provider.people.delete('eli');
      clock.turn(15 * 60);
      assert.equal(await statusOf(eli, address), 401);
    });
});
