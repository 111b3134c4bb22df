import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';

import { createExample } from '../../src/handoff/model/examples.ts';
import { launchBrowser, withoutBrowser } from '../support/browser.ts';
import {
  assertAccessible,
  assertFits,
  assertPresentable,
  assertSmallScripts,
  boxOf,
  focused,
  go,
  maxScriptSize,
  type Pages,
  pagesOf,
  scrollToEnd,
} from '../support/dashboard.ts';
import { adminKey, newTenant, packetRequest, startService, TestClock, type TestService } from '../support/service.ts';

const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name });
const heading = (page: Page, name: string | RegExp) => page.getByRole('heading', { level: 1, name });

const question = { required: true, reason: 'The amount is above the limit.', responder: 'dana@example.com' };
const refund = {
  ...question,
  question: 'Refund 42 EUR?',
  options: ['Approve', { value: 'half', label: 'Refund half' }, { value: 'reject', label: 'Reject', style: 'danger' }],
};

// All tests share a browser, a service and a tab. Each has a tenant of its own, so that its inbox has its own questions only.
describe('the console', { skip: withoutBrowser }, () => {
  let browser: Browser;
  let service: TestService;
  let pages: Pages;
  const afters: (() => unknown)[] = [];
  const scope = { after: (work: () => unknown) => void afters.unshift(work) };
  before(async () => {
    browser = await launchBrowser();
    scope.after(() => browser.close());
    service = await startService(scope as TestContext, {
      clock: new TestClock(new Date().toISOString()),
      settings: { SERVICE_WEBHOOK_ALLOW: '127.0.0.1' },
    });
    pages = pagesOf(scope, browser, `${await service.handoff.start()}/console`);
  });
  after(async () => {
    for (const work of afters) await work();
  });

  const call = async (key: string, method: string, path: string, body?: unknown) => {
    const answer = await service.call(method, path, { key, ...(body === undefined ? {} : { body }) });
    assert.ok(answer.status < 300, answer.text);
    return answer.body;
  };
  /** Creates a packet that asks, and returns its id. */
  async function ask(key: string, hitl: object, changes = {}): Promise<string> {
    const { id } = await call(key, 'POST', '/packets', packetRequest(changes));
    await call(key, 'PATCH', `/packets/${id}`, { status: 'awaiting_human', hitl });
    return id;
  }
  /** Enters a key that the page forgets when it is loaded again, since the next test has another one. */
  async function enterKey(page: Page, key: string): Promise<void> {
    await page.getByLabel('Key', { exact: true }).fill(key);
    await page.getByLabel('Ask for it again when the page is reloaded').check();
    await page.getByLabel('Key', { exact: true }).press('Enter');
  }
  /** Signs in at a page, with a key of a new tenant unless one is given. */
  async function signIn(t: TestContext, path: string, key?: string): Promise<{ page: Page; key: string }> {
    const used = key ?? (await newTenant(service, { tier: 'business' })).key;
    const page = await pages.open(t, path);
    await page.evaluate('localStorage.clear()');
    await enterKey(page, used);
    await page.getByText('live', { exact: true }).waitFor();
    return { page, key: used };
  }
  const historyOf = async (key: string, id: string) => (await call(key, 'GET', `/packets/${id}/history`)).events;

  test('a question is on the screen when it is asked, and is answered by keyboard alone; the history names console and digest', async (t) => {
    const { page, key } = await signIn(t, '/inbox');
    await page.getByText('No open questions').waitFor();
    await page.getByText('service-cli packets ask').waitFor();
    const id = await ask(key, refund);
    await page.getByRole('heading', { name: 'Refund 42 EUR?' }).waitFor();
    await page.waitForFunction(`document.title.startsWith('(1) Inbox')`);
    await page.keyboard.press('2');
    await page.keyboard.press('Enter');
    await page.getByText('The answer is recorded.').waitFor();
    await page.getByText('No open questions').waitFor();
    const { hitl } = await call(key, 'GET', `/packets/${id}`);
    assert.equal(hitl.response, 'half');
    assert.equal(hitl.responded_by, 'dana@example.com');
    const { details } = (await historyOf(key, id)).at(-1);
    assert.equal(details.via, 'console');
    assert.match(details.digest, /^[0-9a-f]{64}$/);
  });

  test('what is asked about and the options are in sight together; own words and a remark are folded away; the keys can be switched off', async (t) => {
    const { key } = await newTenant(service, { tier: 'business' });
    const summary = 'The parcel came late. '.repeat(30);
    const id = await ask(key, refund, { context: { summary } });
    const { page } = await signIn(t, '/inbox', key);
    await page.setViewportSize({ width: 1280, height: 800 });
    const options = page.getByRole('group', { name: 'Options' });
    await options.waitFor();
    for (const part of [options, page.getByRole('main').getByText('The parcel came late.').last(), button(page, 'Send answer')]) {
      const { y, height } = await boxOf(part);
      assert.ok(y + height <= 800, `${y} and ${height} pixels`);
    }
    // No option is painted before one is chosen.
    const fills = await page.evaluate<string[]>(
      "[...document.querySelectorAll('fieldset button')].map((one) => getComputedStyle(one).backgroundColor)",
    );
    assert.equal(new Set(fills).size, 1);
    assert.equal((await page.getByLabel('Another answer').count()) + (await page.getByLabel('Remark (optional)').count()), 0);
    await button(page, 'Add a remark').click();
    await page.getByLabel('Remark (optional)').and(page.locator(':focus')).waitFor();
    await button(page, 'Answer in your own words').click();
    await page.getByLabel('Another answer').and(page.locator(':focus')).waitFor();
    // In a narrow window the beginning of what is asked about stands above the answer, the rest is shown on demand.
    await go(page, `/packets/${id}`);
    await page.setViewportSize({ width: 390, height: 844 });
    const more = button(page, 'Show all that the question is about');
    await more.waitFor();
    assert.ok((await boxOf(options)).y < 844);
    await more.click();
    await more.waitFor({ state: 'detached' });
    await page.setViewportSize({ width: 1280, height: 900 });

    await go(page, '/inbox');
    await heading(page, 'Inbox').waitFor();
    await options.waitFor();
    await page.keyboard.press('1');
    await options.getByRole('button', { pressed: true }).getByText('Approve').waitFor();
    await button(page, 'Shortcuts').click();
    await page.getByLabel('Use these keys').uncheck();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    // The button that opened the dialog has the focus again, and Enter belongs to it.
    await page.evaluate('document.activeElement.blur()');
    for (const pressed of ['2', 'Enter', '?']) await page.keyboard.press(pressed);
    await options.getByRole('button', { pressed: true }).getByText('Approve').waitFor();
    assert.equal(await page.getByRole('dialog').count(), 0);
    assert.equal((await call(key, 'GET', `/packets/${id}`)).hitl.response, null);
    await page.reload();
    await enterKey(page, key);
    await options.waitFor();
    await page.keyboard.press('1');
    assert.equal(await options.getByRole('button', { pressed: true }).count(), 0, 'it stays so');
  });

  test('the timeline says what was asked and answered, with details on demand; an answer of the day is listed with what was seen', async (t) => {
    const { key } = await newTenant(service, { tier: 'business' });
    const id = await ask(key, { ...refund, responder: undefined }, { context: { summary: 'Charged twice.' } });
    const { page } = await signIn(t, '/inbox/answers', key);
    await page.getByText('No answers today').waitFor();
    await go(page, `/packets/${id}`);
    const timeline = page.locator('section', { has: page.getByRole('heading', { name: 'Timeline' }) }).last();
    await timeline.getByText('asked a person: Refund 42 EUR?').waitFor();
    await page.getByRole('button', { name: /Refund half/ }).click();
    await page.getByLabel('Your name').fill('Dana');
    await button(page, 'Send answer').click();
    await timeline.getByText('Dana answered half in the console').waitFor();
    assert.equal(await timeline.getByText('hitl_responded').isVisible(), false);
    await timeline.getByRole('listitem').first().locator('summary').click();
    await timeline.getByText('hitl_responded').waitFor();
    await timeline.getByText('human:Dana').waitFor();
    await assertAccessible(page);

    await go(page, '/inbox/answers');
    await heading(page, 'My answers').waitFor();
    await page.getByText('Refund 42 EUR?', { exact: true }).waitFor();
    await page.getByText('half', { exact: true }).waitFor();
    await button(page, 'What I saw').click();
    await page.getByText('Charged twice.').waitFor();
    assert.equal(await page.getByText('The packet has changed since your answer.').count(), 0);
    await call(key, 'PATCH', `/packets/${id}`, { context: { summary: 'Charged once.' } });
    await page.getByText('The packet has changed since your answer.').waitFor();
    await assertAccessible(page);
  });

  test('of many answers of a day only the packets of the shown ones are read, once each', async (t) => {
    const { key } = await newTenant(service, { tier: 'business' });
    for (let index = 0; index < 21; index += 1) {
      const id = await ask(key, { ...refund, question: `Refund ${index} EUR?` });
      await call(key, 'POST', `/packets/${id}/respond`, { response: 'Approve', responded_by: 'dana' });
    }
    const { page } = await signIn(t, '/packets', key);
    await page.evaluate("localStorage.setItem('baton.name', 'dana')");
    const read: string[] = [];
    page.on('request', (request) => {
      if (/\/packets\/[0-9a-f-]{36}$/.test(request.url())) read.push(request.url());
    });
    await go(page, '/inbox/answers');
    await page.getByText('Refund 20 EUR?', { exact: true }).waitFor();
    await page.getByText('Refund 1 EUR?', { exact: true }).waitFor();
    assert.deepEqual([read.length, new Set(read).size], [20, 20]);
    await button(page, 'Show earlier answers (1)').click();
    await page.getByText('Refund 0 EUR?', { exact: true }).waitFor();
    assert.equal(new Set(read).size, 21);
  });

  test('the agents show the contract of each, with an example to copy', async (t) => {
    const { page, key } = await signIn(t, '/agents');
    await call(key, 'PUT', '/agents/resolver/contract', {
      schema: { properties: { context: { required: ['custom'] } } },
      description: 'Refunds need the <b>order</b>.',
      examples: [{ context: { summary: 'A refund', custom: { order_id: 'ORD-1' } } }],
    });
    await call(key, 'POST', '/packets', packetRequest({ context: { summary: 'A refund', custom: {} } }));
    await go(page, '/agents');
    await page
      .getByRole('row', { name: /frontline/ })
      .getByText('None')
      .waitFor();
    await button(page, 'Version 1').click();
    const dialog = page.getByRole('dialog', { name: 'Contract of resolver' });
    await dialog.getByText('Refunds need the <b>order</b>.').waitFor();
    const example = dialog.getByRole('region', { name: 'Example' });
    await example.getByText('"order_id": "ORD-1"').waitFor();
    await page.setViewportSize({ width: 1280, height: 400 });
    const lines = await boxOf(example.locator('pre'));
    assert.ok((await boxOf(example)).height > lines.height, 'the dialog scrolls, and not what is in it');
    await assertAccessible(page);
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await button(page, 'Copy example').click();
    await dialog.getByText('Copied').waitFor({ state: 'attached' });
    assert.deepEqual(JSON.parse(await page.evaluate('navigator.clipboard.readText()')).context.custom, { order_id: 'ORD-1' });
    await page.setViewportSize({ width: 320, height: 800 });
    await assertFits(page);
  });

  test('the overview shows what waits, is held, was asked and done, as figures, as plots and as a table', async (t) => {
    const { key } = await newTenant(service, { tier: 'business' });
    await ask(key, refund);
    for (let index = 0; index < 3; index += 1) await call(key, 'POST', '/packets', packetRequest());
    const { id } = await call(key, 'POST', '/packets', packetRequest());
    await call(key, 'POST', `/packets/${id}/claim`, { agent_id: 'resolver' });
    await call(key, 'PATCH', `/packets/${id}`, { status: 'completed' });
    const { page } = await signIn(t, '/overview', key);
    const panel = (name: string) => page.locator('section', { has: page.getByRole('heading', { level: 2, name, exact: true }) }).last();
    await panel('Questions').getByRole('link', { name: '1', exact: true }).waitFor();
    await panel('Work').getByRole('link', { name: '3', exact: true }).waitFor();
    await panel('Done by hour').getByText('Completed 1').waitFor();
    for (const name of ['Waiting, held and asked', 'Done by hour', 'Created by hour']) await page.getByRole('img', { name }).waitFor();
    await button(page, 'Show as a table').click();
    const rows = page.getByRole('table', { name: 'By hour' }).getByRole('row');
    assert.equal(await rows.count(), 26, 'a heading, a day and the hour that runs');
    assert.match((await rows.nth(1).textContent()) ?? '', /51000301$/);
    await assertAccessible(page);
    await button(page, 'Last week').click();
    await page.waitForURL('**/overview?period=week');
    await rows.nth(169).waitFor();
  });

  test('a key that may only read and respond sees no page for those who manage; at 390 pixels every link is in sight; a channel says where its links lead', async (t) => {
    const { key } = await newTenant(service, { tier: 'business' });
    const { key: narrow } = await call(key, 'POST', '/keys', { name: 'dana', scopes: ['read', 'respond'], responder: 'dana' });
    const { page } = await signIn(t, '/', narrow);
    await page.waitForURL('**/inbox');
    const links = page.getByRole('navigation', { name: 'Main' }).getByRole('link');
    await page.getByRole('navigation', { name: 'Main' }).getByText('Webhooks').waitFor({ state: 'detached' });
    assert.deepEqual(await links.allTextContents(), ['Overview', 'Inbox', 'Packets', 'Agents', 'Audit']);
    const { key: manager } = await call(key, 'POST', '/keys', { name: 'manager', scopes: ['manage'] });
    await page.goto(`${pages.address}/console`);
    await enterKey(page, manager);
    await page.waitForURL('**/webhooks');
    const { page: whole } = await signIn(t, '/channels', adminKey);
    await whole.setViewportSize({ width: 390, height: 844 });
    for (const link of await whole.getByRole('navigation', { name: 'Main' }).getByRole('link').all()) {
      const { x, width } = await boxOf(link);
      assert.ok(x >= 0 && x + width <= 390, (await link.textContent()) ?? '');
    }
    await whole.setViewportSize({ width: 1280, height: 900 });
    await button(whole, 'New channel').click();
    const dialog = whole.getByRole('dialog');
    await dialog.getByLabel('Kind').selectOption('slack');
    await dialog.getByLabel(/^Address of/).fill('http://127.0.0.1:9/services/T/B/warned');
    await whole.keyboard.press('Enter');
    await whole
      .getByText(/SERVICE_PUBLIC_URL/)
      .first()
      .waitFor();
    // Other tests use this tenant.
    for (const { id } of await call(adminKey, 'GET', '/channels')) await call(adminKey, 'DELETE', `/channels/${id}`);
  });

  test('an answer with an entered name is marked as unverified; only the link that took it is answered; an empty secret is not to be copied', async (t) => {
    const { key } = await newTenant(service, { tier: 'business' });
    const id = await ask(key, { ...refund, responder: undefined });
    const urls: string[] = [];
    for (let index = 0; index < 3; index += 1)
      urls.push(pages.address + new URL((await call(key, 'POST', `/packets/${id}/answer-links`, {})).url).pathname);
    const { hitl } = await call(key, 'GET', `/packets/${id}`);
    const body = new URLSearchParams({ digest: hitl.digest, option: '0', name: 'Mia' });
    assert.equal((await fetch(urls[0]!, { method: 'POST', body })).status, 200);
    const { page } = await signIn(t, `/packets/${id}`, key);
    await page.getByRole('blockquote').getByText('unverified').waitFor();
    await page.getByText('Mia answered Approve by an answer link, with a name that nobody verified').waitFor();
    assert.equal(await page.getByText('answered', { exact: true }).count(), 1);
    assert.equal(await page.getByText('closed', { exact: true }).count(), 2);

    await go(page, '/webhooks');
    await button(page, 'New webhook').click();
    await page.getByText('Copy it now: it is shown only once.').waitFor();
    await page.getByLabel('Secret').fill('');
    await page.getByText('Copy it now: it is shown only once.').waitFor({ state: 'detached' });
    await page.keyboard.press('Escape');
    await go(page, '/webhooks/dead-letters');
    await page.getByText('A delivery that has used up its attempts').waitFor();
    assert.equal(await page.getByText(/six/).count(), 0);
  });

  test('j and k move between questions, oldest first; ? shows the keys; a dangerous option is asked once more; Enter opens the packet', async (t) => {
    const { key } = await newTenant(service, { tier: 'business' });
    const ids = [];
    for (const text of ['First?', 'Second?', 'Third?']) ids.push(await ask(key, { ...refund, question: text }));
    const { page } = await signIn(t, '/inbox', key);
    const selected = page.locator('a[aria-current=true]');
    await selected.getByText('First?').waitFor();
    for (const [pressed, shown] of [
      ['j', 'Second?'],
      ['j', 'Third?'],
      ['j', 'Third?'],
      ['k', 'Second?'],
    ] as const) {
      await page.keyboard.press(pressed);
      await selected.getByText(shown).waitFor();
    }
    await page.keyboard.press('?');
    const help = page.getByRole('dialog', { name: 'Keys of the inbox' });
    await focused(help);
    await page.keyboard.press('Escape');
    // Until it is closed, keys belong to it.
    await help.waitFor({ state: 'detached' });
    await page.getByRole('heading', { level: 2, name: 'Second?' }).waitFor();
    await page.keyboard.press('3');
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Send this answer?' });
    await focused(dialog);
    assert.equal((await call(key, 'GET', `/packets/${ids[1]}`)).hitl.response, null);
    await assertAccessible(page);
    // The safe button has the focus, so that a key that repeats does not confirm.
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByText('The answer is recorded.').waitFor();
    await dialog.waitFor({ state: 'detached' });
    assert.equal((await call(key, 'GET', `/packets/${ids[1]}`)).hitl.response, 'reject');
    await selected.getByText('Third?').waitFor();
    await page.keyboard.press('k');
    await page.keyboard.press('Enter');
    await heading(page, 'Packet').waitFor();
    assert.equal(new URL(page.url()).pathname, `/console/packets/${ids[0]}`);
  });

  test('an answer to a question that has changed is not recorded: the choice is dropped, and the page says so', async (t) => {
    const { page, key } = await signIn(t, '/inbox');
    const id = await ask(key, refund);
    await page.getByRole('heading', { name: 'Refund 42 EUR?' }).waitFor();
    await page.keyboard.press('1');
    // The change arrives by stream while the person reads.
    await call(key, 'PATCH', `/packets/${id}`, { context: { summary: 'The customer has 17 refunds this month.' } });
    await page.getByText('The question has changed since you opened it.').waitFor();
    // In the list, and beside the question.
    await page.getByText('17 refunds').nth(1).waitFor();
    assert.equal(await page.locator('[aria-pressed=true]').count(), 0);
    // The change is committed while the answer is on its way.
    await page.route('**/respond', async (route) => {
      await call(key, 'PATCH', `/packets/${id}`, { hitl: { question: 'Refund 4,200 EUR?' } });
      await route.fallback();
    });
    await page.keyboard.press('1');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Refund 4,200 EUR?' }).waitFor();
    await page.getByText('The question has changed since you').first().waitFor();
    const { hitl, status } = await call(key, 'GET', `/packets/${id}`);
    assert.deepEqual([status, hitl.response], ['awaiting_human', null]);
  });

  test('the inbox keeps the oldest 1,000 questions while events bring others; it says what each is about and keeps a filter that nothing matches', async (t) => {
    const { key } = await newTenant(service, { tier: 'business' });
    await ask(key, { ...refund, question: 'Asked first?' }, { context: { summary: 'The parcel came late.' } });
    const page = await pages.open(t, '/inbox');
    await page.route('**/api/v1/packets?*status=awaiting_human*', async (route) => {
      const response = await route.fetch();
      const json = await response.json();
      const [first] = json.packets;
      // Of which all but the first were asked after those of the events.
      const later = { ...first.hitl, question: 'Asked later?', requested_at: new Date(Date.now() + 3_600_000).toISOString() };
      json.packets = Array.from({ length: 1000 }, (_, index) =>
        index === 0 ? first : { ...first, id: first.id.slice(0, -4) + (1000 + index), hitl: later },
      );
      await route.fulfill({ response, json });
    });
    await enterKey(page, key);
    await page.getByText('The oldest 1000 questions are shown.').waitFor();
    const list = page.getByRole('list', { name: 'Open questions' });
    assert.equal(await list.getByRole('listitem').count(), 1000);
    await list.getByText('The parcel came late.').first().waitFor();
    for (const question of ['Second?', 'Third?']) {
      await ask(key, { ...refund, question });
      await list.getByText(question).waitFor();
    }
    await page.getByRole('heading', { level: 2, name: 'Asked first?' }).waitFor();
    assert.equal(await list.getByRole('listitem').count(), 1000);
    assert.match(await page.title(), /^\(1000\) Inbox/);
    await go(page, '/inbox?tag=gone');
    await page.getByText('No open question matches the filters').waitFor();
    assert.equal(await page.getByLabel('Tag').inputValue(), 'gone');
  });

  test('a question with a schema is answered by a form; a fault is shown beside its field', async (t) => {
    const { page, key } = await signIn(t, '/inbox');
    const properties = {
      amount: { type: 'number', title: 'Amount', maximum: 50 },
      method: { type: 'string', enum: ['card', 'bank'] },
      notify: { type: 'boolean', title: 'Notify' },
    };
    const id = await ask(key, { ...question, question: 'How much?', schema: { type: 'object', properties, required: ['amount'] } });
    await page.goto(`${pages.address}/console/packets/${id}`);
    await enterKey(page, key);
    await page.getByLabel('Amount').fill('51');
    await page.getByLabel('method (optional)').selectOption('bank');
    await page.getByLabel('Notify (optional)').selectOption('Yes');
    await button(page, 'Send answer').click();
    await page.getByText('Can be at most 50.').waitFor();
    await assertAccessible(page);
    await page.getByLabel('Amount').fill('41.5');
    await page.getByLabel('Amount').press('Enter');
    await page.getByText('The answer is recorded.').waitFor();
    assert.deepEqual((await call(key, 'GET', `/packets/${id}`)).hitl.data, { amount: 41.5, method: 'bank', notify: true });
    await page.getByText('41.5').first().waitFor();
  });

  test('Enter answers or opens the question that has the focus, also in a narrow window, and never sends a form without an entry', async (t) => {
    const { key } = await newTenant(service, { tier: 'business' });
    const ids = [];
    for (const text of ['First?', 'Second?', 'Third?']) {
      const schema = { type: 'object', properties: { amount: { type: 'number', title: 'Amount' } } };
      ids.push(await ask(key, { ...question, question: text, schema }));
    }
    const { page } = await signIn(t, '/inbox', key);
    const third = page.getByRole('list', { name: 'Open questions' }).getByRole('link').last();
    for (const width of [1280, 700]) {
      await page.setViewportSize({ width, height: 900 });
      await third.focus();
      if (width === 1280) await page.getByRole('heading', { level: 2, name: 'Third?' }).waitFor();
      await page.keyboard.press('Enter');
      await heading(page, 'Packet').waitFor();
      assert.equal(new URL(page.url()).pathname, `/console/packets/${ids[2]}`);
      await page.goBack();
      await third.waitFor();
    }
    await page.setViewportSize({ width: 1280, height: 900 });
    for (const id of ids) assert.equal((await call(key, 'GET', `/packets/${id}`)).hitl.response, null);
  });

  test('a dialog begins anew for another item; the board leads to the list with its filters; all of a long message is shown on demand', async (t) => {
    const { key } = await newTenant(service, { tier: 'business' });
    const packets = Array.from({ length: 31 }, () => packetRequest({ metadata: { ...createExample.metadata, tags: ['board'] } }));
    await call(key, 'POST', '/packets/batch', { packets });
    await call(key, 'POST', '/packets', packetRequest());
    const hostile = 'a_'.repeat(50_000);
    const conversation_state = [{ role: 'user', content: hostile }];
    const parent = await call(key, 'POST', '/packets', packetRequest({ context: { summary: 'long', conversation_state } }));
    const child = await call(key, 'POST', `/packets/${parent.id}/chain`, packetRequest({ context: { summary: 'the next one' } }));
    for (const [id, responder] of [
      [parent.id, 'dana@example.com'],
      [child.id, 'kim@example.com'],
    ])
      await call(key, 'PATCH', `/packets/${id}`, { status: 'awaiting_human', hitl: { ...refund, responder } });
    for (const name of ['one', 'two']) await call(key, 'POST', '/keys', { name });
    const { page } = await signIn(t, `/packets/${parent.id}`, key);
    await button(page, 'Show all (90,000 more characters)').click();
    await button(page, /^Show all/).waitFor({ state: 'detached' });
    const dialog = page.getByRole('dialog');
    await button(page, 'Make a link').click();
    assert.equal(await dialog.getByLabel('For whom').inputValue(), 'dana@example.com');
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'the next one' }).click();
    await page.waitForURL(`**/packets/${child.id}`);
    await button(page, 'Make a link').click();
    assert.equal(await dialog.getByLabel('For whom').inputValue(), 'kim@example.com');
    await page.keyboard.press('Escape');
    assert.equal(await page.getByText('The question has changed').count(), 0);

    await go(page, '/keys');
    await page.route('**/api/v1/keys/*', (route) => route.fulfill({ status: 409, body: '{}' }));
    await button(page, 'Revoke one').click();
    await dialog.getByRole('button', { name: 'Revoke' }).first().click();
    await dialog.getByText('The request was rejected.').waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await button(page, 'Revoke two').click();
    assert.equal(await dialog.getByText('The request was rejected.').count(), 0);
    await page.unroute('**/api/v1/keys/*');
    await page.keyboard.press('Escape');

    await go(page, '/packets?view=board&tags=board');
    await page.getByRole('link', { name: 'All 31' }).click();
    await page.getByText('31 packets').waitFor();
    assert.equal(new URL(page.url()).search, '?tags=board&status=created');
  });

  test('what cannot be read of a packet is reported: its chain and its answer links', async (t) => {
    const { key } = await newTenant(service, { tier: 'business' });
    const parent = await call(key, 'POST', '/packets', packetRequest({ context: { summary: 'the first one' } }));
    const { id } = await call(key, 'POST', `/packets/${parent.id}/chain`, packetRequest());
    await call(key, 'PATCH', `/packets/${id}`, { status: 'awaiting_human', hitl: refund });
    const { page } = await signIn(t, '/packets', key);
    const broken = { status: 409, json: { detail: 'It is broken.', code: 'CONFLICT' } };
    const isBroken = ({ pathname }: URL) => pathname.endsWith(`/packets/${parent.id}`) || pathname.endsWith('/answer-links');
    await page.route(isBroken, (route) => route.fulfill(broken));
    await go(page, `/packets/${id}`);
    await page.getByText('The chain could not be loaded.').waitFor();
    await page.getByText('The answer links could not be loaded.').waitFor();
    await assertAccessible(page);
    await page.unroute(isBroken);
    await button(page, 'Try again').last().click();
    await page.getByRole('link', { name: 'the first one' }).waitFor();
  });

  test('a packet is claimed, released, failed and deleted from its page; an answer link is made, shown once and revoked', async (t) => {
    const { key } = await newTenant(service, { tier: 'business' });
    const { id } = await call(key, 'POST', '/packets', packetRequest());
    const { page } = await signIn(t, `/packets/${id}`, key);
    const dialog = page.getByRole('dialog');
    const run = async (name: string, done: string) => {
      await button(page, name).click();
      await dialog.getByRole('button', { name, exact: true }).first().click();
      await page.getByText(done).waitFor();
      await button(page, 'Dismiss').first().click();
    };
    await button(page, 'Claim').click();
    await dialog.getByLabel('Agent id').fill('resolver');
    await page.keyboard.press('Enter');
    await page.getByText('The packet is claimed.').waitFor();
    assert.equal((await call(key, 'GET', `/packets/${id}`)).claimed_by.agent_id, 'resolver');
    await run('Release', 'The packet is released.');
    await call(key, 'PATCH', `/packets/${id}`, { status: 'awaiting_human', hitl: refund });
    await button(page, 'Make a link').click();
    await dialog.getByRole('button', { name: 'Make the link' }).click();
    const url = (await page.getByRole('dialog', { name: 'The answer link' }).locator('code').textContent()) ?? '';
    assert.equal((await fetch(url, { headers: { accept: 'text/html' } })).status, 200);
    await assertAccessible(page);
    await dialog.getByRole('button', { name: 'Done' }).click();
    await button(page, 'Revoke').click();
    await page.getByText('revoked', { exact: true }).waitFor();
    assert.equal((await fetch(url)).status, 410);
    await run('Fail', 'The packet has failed.');
    await run('Delete', 'The packet is deleted.');
    assert.equal((await call(key, 'GET', `/packets/${id}`)).status, 'expired');
    // A packet of another tenant looks like one that does not exist.
    const other = await newTenant(service);
    const foreign = await call(other.key, 'POST', '/packets', packetRequest());
    await go(page, `/packets/${foreign.id}`);
    await heading(page, 'Packet not found').waitFor();
  });

  test('packets are listed, filtered, searched and shown as a board; of hundreds only visible rows are rendered', async (t) => {
    const { key } = await newTenant(service, { tier: 'business' });
    const packets = Array.from({ length: 100 }, (_, index) => packetRequest({ context: { summary: `packet number ${index}` } }));
    for (let batch = 0; batch < 3; batch += 1) await call(key, 'POST', '/packets/batch', { packets });
    const asked = await ask(key, refund, { context: { summary: 'a zebra crossed' } });
    const { page } = await signIn(t, '/packets', key);
    await page.getByText('301 packets').waitFor();
    const rows = page.getByRole('region', { name: 'Packets' });
    assert.ok((await rows.getByRole('listitem').count()) < 40);
    // Before the list is scrolled, since a page that has been read is not read again at once.
    await page.route(/offset=100/, (route) => route.fulfill({ status: 409, json: { detail: 'It is broken.', code: 'CONFLICT' } }));
    await rows.focus();
    await page.keyboard.press('End');
    await rows.getByRole('listitem').last().getByText('packet number 0').waitFor();
    await page.evaluate("document.querySelector('section[aria-label=Packets]').scrollTop = 150 * 60");
    await page.getByText('Some packets could not be loaded.').waitFor();
    await page.unroute(/offset=100/);
    await button(page, 'Try again').click();
    await page.getByText('Some packets could not be loaded.').waitFor({ state: 'detached' });
    await page.getByLabel('Search packets').fill('zebra');
    await page.getByText('1 packet', { exact: true }).waitFor();
    // Two changes in one moment, neither of which is lost.
    await page.evaluate(`{
      const set = (element, type, value) => {
        Object.getOwnPropertyDescriptor(Object.getPrototypeOf(element), 'value').set.call(element, value);
        element.dispatchEvent(new Event(type, { bubbles: true }));
      };
      set(document.querySelector('input[type=search]'), 'input', '');
      set(document.querySelector('select'), 'change', 'awaiting_human');
    }`);
    await page.waitForURL((url) => url.search === '?status=awaiting_human');
    await page.getByText('1 packet', { exact: true }).waitFor();
    await button(page, 'More filters').click();
    await page.getByLabel('Held by agent (id)').fill('nobody');
    await page.getByText('No packet matches').waitFor();
    await button(page, 'Clear the filters').click();
    await page.getByText('301 packets').waitFor();
    // The overview leads to what is held, which is of two statuses.
    await go(page, '/packets?status=claimed,awaiting_human');
    await page.getByText('1 packet', { exact: true }).waitFor();
    const status = page.getByLabel('Status', { exact: true }).locator('option:checked');
    assert.equal(await status.textContent(), 'claimed, awaiting human');
    await go(page, '/packets');
    await button(page, 'Show as a board').click();
    const column = page.locator('section', { has: page.getByRole('heading', { level: 2, name: 'awaiting human' }) }).last();
    await column.getByText('a zebra crossed').waitFor();
    // By the stream, without a reload.
    await call(key, 'POST', `/packets/${asked}/respond`, { response: 'Approve', responded_by: 'dana' });
    await column.getByText('none').waitFor();
  });

  test('a list of packets is scrolled to its end by adding only visible rows, page by page', async (t) => {
    const { key } = await newTenant(service, { tier: 'business' });
    const packets = Array.from({ length: 100 }, (_, index) => packetRequest({ context: { summary: `row ${index}` } }));
    for (let batch = 0; batch < 10; batch += 1) await call(key, 'POST', '/packets/batch', { packets });
    const { page } = await signIn(t, '/packets', key);
    const rows = page.getByRole('region', { name: 'Packets' });
    await page.getByText('1,000 packets').waitFor();
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).search));
    const { frames, longestMs, mostAdded, mostPresent } = await scrollToEnd(page, 'Packets');
    t.diagnostic(`${frames} frames, the longest took ${longestMs.toFixed(1)} ms`);
    await rows
      .locator('[aria-posinset="1000"]')
      .getByText(/^row \d+$/)
      .waitFor();
    assert.ok(frames > 100);
    assert.ok(mostAdded > 0 && mostAdded < 40, `a frame adds at most the visible rows: ${mostAdded}`);
    assert.ok(mostPresent < 40, `only the visible rows are present: ${mostPresent}`);
    assert.ok(asked.some((search) => /[?&]offset=900\b/.test(search)));
    assert.ok(
      asked.every((search) => !search.includes('limit') || /[?&]limit=(100|200|1)\b/.test(search)),
      asked.join(' '),
    );
  });

  test('a new question is notified of while the page is hidden and the browser allows it; an older one is not', async (t) => {
    const { key } = await newTenant(service, { tier: 'business' });
    const old = await ask(key, { ...refund, question: 'Asked before?' });
    const { page } = await signIn(t, '/inbox', key);
    await page.getByText('Asked before?').first().waitFor();
    const origin = { origin: pages.address };
    const state = (isHidden: boolean) =>
      page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true })`);
    // Chromium keeps nothing of a notification that a test could read, so that its constructor is listened to.
    await page.evaluate(`window.notes = [];
      window.Notification = class extends Notification {
        constructor(title, options) {
          super(title, options);
          notes.push([title, options.tag, Notification.permission]);
        }
      }; undefined`);
    const shown = async (text: string) => {
      await ask(key, { ...refund, question: text });
      await page.getByText(text).first().waitFor();
      return page.evaluate<string[][]>('notes');
    };
    await state(true);
    await page.context().clearPermissions();
    assert.deepEqual(await shown('Not allowed?'), []);
    await page.context().grantPermissions(['notifications', 'clipboard-read', 'clipboard-write'], origin);
    t.after(() => page.context().grantPermissions(['clipboard-read', 'clipboard-write'], origin));
    await state(false);
    assert.deepEqual(await shown('In sight?'), []);
    await state(true);
    // A change of an open question is no new question.
    await call(key, 'PATCH', `/packets/${old}`, { context: { summary: 'Changed.' } });
    const notes = await shown('New?');
    assert.deepEqual(
      notes.map(([title, , permission]) => [title, permission]),
      [['New?', 'granted']],
    );
    const { packets } = await call(key, 'GET', '/packets?status=awaiting_human&limit=1');
    assert.equal(notes[0]![1], packets[0].id);
  });

  test('webhooks are registered, tested, changed and removed; a dead letter names its webhook and is replayed; the tab of the page is marked', async (t) => {
    const { page, key } = await signIn(t, '/webhooks');
    await page.getByText('service-cli hooks create').waitFor();
    await button(page, 'New webhook').click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Address').fill('ftp://127.0.0.1:9/hook');
    await dialog.getByRole('button', { name: 'Register' }).first().click();
    await dialog.getByText('The request was rejected.').waitFor();
    await dialog.getByLabel('Address').fill('http://127.0.0.1:9/hook');
    await dialog.getByLabel('packet.expired').uncheck();
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'http://127.0.0.1:9/hook' }).click();
    await button(page, 'Test').click();
    await page.getByText('A test delivery is on its way.').waitFor();
    for (let attempt = 0; attempt < 6; attempt += 1) {
      await service.handoff.runOnce.deliver();
      service.clock.turn(25_000);
    }
    await button(page, 'Pause').click();
    await page.getByText('paused', { exact: true }).waitFor();
    const [hook] = await call(key, 'GET', '/hooks');
    assert.equal(hook.active, false);
    assert.equal(hook.events.length, 7);
    await button(page, 'Activate').click();
    await page.getByText('active', { exact: true }).waitFor();
    const tab = page.getByRole('navigation', { name: 'Webhooks' }).locator('[aria-current=page]');
    assert.deepEqual(await tab.allTextContents(), ['Webhooks'], 'a webhook is one of the pages of the first tab');
    await page.getByRole('link', { name: 'Dead letters' }).click();
    await page.getByRole('row', { name: 'ping' }).getByRole('link', { name: 'http://127.0.0.1:9/hook' }).waitFor();
    assert.deepEqual(await tab.allTextContents(), ['Dead letters']);
    await button(page, 'Show').click();
    await dialog.getByLabel('Body').getByText(`"webhook_id": "${hook.id}"`).waitFor();
    await assertAccessible(page);
    await page.keyboard.press('Escape');
    await button(page, 'Replay').click();
    await page.getByText('It is sent again.').waitFor();
    await page.getByText('No dead letters').waitFor();
    await go(page, `/webhooks/${hook.id}`);
    await button(page, 'Remove').click();
    await dialog.getByRole('button', { name: 'Remove' }).first().click();
    await page.getByText('No webhooks yet').waitFor();
  });

  test('a channel is created, tested, paused and removed; until there is one, the inbox says that nobody is notified', async (t) => {
    const { page, key } = await signIn(t, '/inbox');
    await page.getByText('Nobody is notified of new questions').waitFor();
    await page.getByRole('main').getByRole('link', { name: 'Channels' }).click();
    await page.getByText('service-cli channels create').waitFor();
    await button(page, 'New channel').click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Kind').selectOption('slack');
    await dialog.getByLabel(/^Address of/).fill('http://127.0.0.1:9/services/T/B/secret-x9Qz');
    await dialog.getByLabel('answered').check();
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: /x9Qz/ }).click();
    await button(page, 'Test').click();
    await page.getByText('A test message is on its way.').waitFor();
    await page.getByRole('table', { name: 'Deliveries' }).getByText('test', { exact: true }).waitFor();
    await assertAccessible(page);
    await button(page, 'Pause').click();
    await page.getByText('paused', { exact: true }).waitFor();
    const [channel] = await call(key, 'GET', '/channels');
    assert.deepEqual([channel.active, channel.events], [false, ['asked', 'reminded', 'answered']]);
    await button(page, 'Activate').click();
    await page.getByText('active', { exact: true }).waitFor();
    await page.getByRole('link', { name: /^Inbox/ }).click();
    await page.getByText('No open questions').waitFor();
    await page.getByText('Nobody is notified of new questions').waitFor({ state: 'detached' });
    await go(page, `/channels/${channel.id}`);
    await button(page, 'Remove').click();
    await dialog.getByRole('button', { name: 'Remove' }).first().click();
    await page.getByText('No channels yet').waitFor();
  });

  test('a key is created with fewer rights, shown once and revoked; the audit log is downloaded without formulas, and filtered by the words that it shows', async (t) => {
    const { page, key } = await signIn(t, '/keys');
    const dialog = page.getByRole('dialog');
    await button(page, 'New key').click();
    await dialog.getByLabel('What it is for').fill('=cmd()');
    for (const scope of ['work', 'manage']) await dialog.getByLabel(scope, { exact: true }).uncheck();
    await dialog.getByLabel('Answers only as').fill('dana');
    await page.keyboard.press('Enter');
    const made = (await page.getByRole('dialog', { name: 'The new key' }).locator('code').textContent()) ?? '';
    const own = await call(made, 'GET', '/keys/self');
    assert.deepEqual([own.scopes, own.responder], [['read', 'respond'], 'dana']);
    await dialog.getByRole('button', { name: 'Done' }).click();
    await page.getByText('read, respond').waitFor();
    assert.ok(!(await page.content()).includes(made), 'the key is not kept');
    await button(page, 'Revoke =cmd()').click();
    await dialog.getByRole('button', { name: 'Revoke' }).first().click();
    await button(page, 'Revoke =cmd()').waitFor({ state: 'detached' });
    assert.equal((await service.call('GET', '/keys/self', { key: made })).status, 401);

    const { id } = await call(key, 'POST', '/packets', packetRequest());
    await service.call('POST', `/packets/${id}/claim`, { key, body: { agent_id: '@SUM(1)' } });
    await page.getByRole('link', { name: 'Audit' }).click();
    await page.getByText('agent:@SUM(1)').first().waitFor();
    for (const [name, pattern] of [
      ['CSV', /^timestamp,action,resource,.*\r\n.*claimed,packet,/],
      ['JSON Lines', /^\{"id":.*"action":"claimed".*\}\n\{/],
    ] as const) {
      const [download] = await Promise.all([page.waitForEvent('download'), button(page, name).click()]);
      let text = '';
      for await (const chunk of await download.createReadStream()) text += chunk;
      assert.match(text, pattern);
    }
    await call(key, 'POST', `/packets/${await ask(key, refund)}/answer-links`, {});
    await page.getByLabel('Action').fill('answer link created');
    await page.getByText('agent:@SUM(1)').first().waitFor({ state: 'detached' });
    await page.getByRole('cell', { name: 'answer link created' }).waitFor();
  });

  test('the key stays in the tab, or in memory if the person wants it so; it is never in an address, and a revoked key is asked for again', async (t) => {
    const { key, id } = await newTenant(service);
    const addresses: string[] = [];
    const page = await pages.open(t, '/inbox');
    page.on('request', (request) => addresses.push(request.url()));
    await heading(page, 'API key').waitFor();
    assert.equal(await page.getByRole('navigation').count(), 0, 'no link leads to a page that needs the key');
    await assertAccessible(page);
    // Where a key comes from.
    await page.getByText('npx service-cli admin-key').waitFor();
    await page.getByLabel('Key', { exact: true }).fill('svc_wrong');
    await page.keyboard.press('Enter');
    await page.getByText('This key was rejected.').waitFor();
    await page.getByLabel('Key', { exact: true }).fill(key);
    await page.getByLabel('Ask for it again when the page is reloaded').check();
    await page.keyboard.press('Enter');
    await page.getByText('No open questions').waitFor();
    assert.ok(!(await page.evaluate<string>('JSON.stringify([{ ...sessionStorage }, { ...localStorage }])')).includes(key));
    await page.reload();
    await page.getByLabel('Key', { exact: true }).fill(key);
    await page.keyboard.press('Enter');
    await page.getByText('No open questions').waitFor();
    assert.ok((await page.evaluate<string>('JSON.stringify({ ...sessionStorage })')).includes(key));
    assert.ok(!(await page.evaluate<string>('JSON.stringify({ ...localStorage })')).includes(key));
    await page.reload();
    await page.getByText('No open questions').waitFor();
    const [own] = await call(adminKey, 'GET', `/tenants/${id}/keys`);
    await call(adminKey, 'DELETE', `/keys/${own.id}`);
    await go(page, '/packets');
    await heading(page, 'API key').waitFor();
    await page.getByText('This key was rejected.').waitFor();
    assert.deepEqual(
      addresses.filter((address) => address.includes(key)),
      [],
    );
    await page.evaluate('sessionStorage.clear()');
  });

  test('a key that may only read sees no button that it may not use', async (t) => {
    const { key } = await newTenant(service, { tier: 'business' });
    const id = await ask(key, refund);
    const reader = await call(key, 'POST', '/keys', { name: 'reader', scopes: ['read'] });
    const { page } = await signIn(t, `/packets/${id}`, reader.key);
    await page.getByText('This key can’t answer').waitFor();
    for (const name of ['Claim', 'Fail', 'Delete', 'Make a link']) assert.equal(await button(page, name).count(), 0, name);
    for (const [path, name] of [
      ['/webhooks', 'New webhook'],
      ['/channels', 'New channel'],
      ['/keys', 'New key'],
    ] as const) {
      await go(page, path);
      await heading(page, /Webhooks|Channels|Keys/).waitFor();
      assert.equal(await button(page, name).count(), 0, name);
    }
    assert.equal(await page.getByRole('link', { name: 'Tenants' }).count(), 0);
  });

  test('without the service what is loaded stays, with a message that disappears when it answers again', async (t) => {
    const { key } = await newTenant(service, { tier: 'business' });
    await ask(key, refund);
    const { page } = await signIn(t, '/inbox', key);
    await page.getByRole('heading', { name: 'Refund 42 EUR?' }).waitFor();
    await page.route('**/api/v1/**', (route) => route.abort('failed'));
    await page.getByRole('link', { name: 'Audit' }).click();
    await page.getByText("The service can't be reached.").waitFor();
    await page.getByRole('link', { name: /Inbox/ }).click();
    await page.getByText('Refund 42 EUR?').first().waitFor();
    await page.unroute('**/api/v1/**');
    await page.getByRole('link', { name: 'Agents' }).click();
    await page.getByText("The service can't be reached.").waitFor({ state: 'detached' });
  });

  for (const text of [
    '<img src=/owned onerror="window.owned=1">"><script>window.owned=1</script><svg onload=window.owned=1></style>',
    '[a](javascript:window.owned=1) ![b](/owned) <a href="javascript:window.owned=1">c</a> <iframe src=/owned>',
  ])
    test(`${text.slice(0, 30)} in every field is shown as text on every page`, async (t) => {
      const tenant = await newTenant(service, { tier: 'business' });
      const agent = { id: text, name: text, framework: text };
      const id = await ask(
        tenant.key,
        { required: true, reason: text, question: text, responder: text, options: [text, { value: text, label: text, style: 'danger' }] },
        {
          metadata: { source_agent: agent, target_agent: agent, tags: [text.replaceAll(',', '')] },
          context: {
            summary: text,
            conversation_state: [
              { role: text, content: text },
              { role: 'user', content: `> ${text}\n\n| ${text} |\n|---|\n| ${text} |` },
            ],
            artifacts: [{ key: text, value: text, content_type: text }],
            custom: { [text]: text },
          },
          decisions: [{ id: text, decision: text, rationale: text, decided_by: text, alternatives: [text] }],
          actions: {
            pending: [{ id: 'p', description: text, assignee: text }],
            completed: [{ id: 'c', description: text, result: text, completed_by: text }],
            failed: [{ id: 'f', description: text, error: text }],
          },
          dependencies: [{ id: 'd', type: text, description: text, status: text, source: text }],
        },
      );
      await call(tenant.key, 'POST', '/keys', { name: text, responder: text });
      const fields = { type: 'object', properties: { [text]: { type: 'string', title: text, description: text, enum: [text] } } };
      const form = await ask(tenant.key, { required: true, reason: text, question: text, schema: fields });
      const { page } = await signIn(t, '/inbox', tenant.key);
      for (const path of [
        '/inbox',
        `/packets/${id}`,
        `/packets/${form}`,
        '/packets',
        '/packets?view=board',
        '/agents',
        '/keys',
        '/audit',
      ]) {
        await go(page, path);
        await page.getByText(text.slice(0, 20)).filter({ visible: true }).first().waitFor();
        const found = await page.evaluate<string>(
          `JSON.stringify([window.owned ?? null, document.querySelectorAll('img:not([alt=""]), iframe, script:not([src]), [onerror], [onload], a[href^="javascript:" i]').length])`,
        );
        assert.equal(found, '[null,0]', path);
      }
    });

  test('axe finds no violation on any page, light or dark, and no page is wider than a window of 320 or 2,560 pixels', async (t) => {
    const tenant = await newTenant(service, { tier: 'business' });
    const id = await ask(adminKey, refund, {
      context: { summary: 'Shown.', conversation_state: [{ role: 'user', content: '# A\n\n- **b**\n\n| c |\n|---|\n| d |' }] },
    });
    await call(adminKey, 'POST', `/packets/${id}/chain`, packetRequest());
    const hook = await call(adminKey, 'POST', '/hooks', { url: 'http://127.0.0.1:9/hook', secret: 'a-secret-of-16-or-more' });
    await call(adminKey, 'POST', `/hooks/${hook.id}/ping`);
    const { page } = await signIn(t, '/nowhere', adminKey);
    for (const [path, ready] of [
      ['/nowhere', 'mistyped'],
      ['/inbox', 'Refund 42 EUR?'],
      [`/packets/${id}`, 'This packet'],
      ['/packets', /^\d+ packets$/],
      ['/packets?view=board&priority=normal', 'in progress'],
      ['/agents', 'Waiting longest'],
      ['/overview', 'Failing receivers'],
      ['/inbox/answers', 'No answers today'],
      ['/webhooks', hook.url],
      [`/webhooks/${hook.id}`, 'ping'],
      ['/channels', 'No channels yet'],
      ['/webhooks/dead-letters', 'No dead letters'],
      ['/keys', 'first admin key'],
      ['/tenants', 'business'],
      [`/tenants/${tenant.id}`, 'New key'],
      ['/audit', 'webhook: created'],
    ] as const)
      await t.test(path, async () => {
        await go(page, path);
        await page.getByText(ready).last().waitFor();
        assert.equal(await page.getByRole('heading', { level: 1 }).count(), 1, 'one heading of the page');
        await assertPresentable(page);
      });
  });

  test(`the first page needs at most ${maxScriptSize} KB of compressed script, and its policy demands Trusted Types`, async (t) => {
    const { page } = await signIn(t, '/inbox');
    await assertSmallScripts(t, page);
    const policy = (await fetch(`${pages.address}/console`)).headers.get('content-security-policy') ?? '';
    assert.match(policy, /default-src 'none'.*require-trusted-types-for 'script'; trusted-types 'none'/);
    // In a page that may log errors.
    const trial = await browser.newPage();
    await trial.goto(`${pages.address}/console`);
    await assert.rejects(trial.evaluate(`document.body.innerHTML = '<b>x</b>'`), /TrustedHTML/);
    await trial.close();
  });
});
