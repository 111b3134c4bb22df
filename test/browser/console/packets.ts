import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createExample } from '../../../src/handoff/model/examples.ts';
import { refund, type TestConsole } from '../../support/console.ts';
import { assertAccessible, assertFits, boxOf, button, go, heading, scrollToEnd } from '../../support/dashboard.ts';
import { newTenant, packetRequest } from '../../support/service.ts';

/** Tests of packets, agents and figures. */
export function packetTests(on: TestConsole): void {
  test('what cannot be read of a packet is reported: its chain and its answer links', async (t) => {
    const { key } = await newTenant(on.service, { tier: 'business' });
    const parent = await on.call(key, 'POST', '/packets', packetRequest({ context: { summary: 'the first one' } }));
    const { id } = await on.call(key, 'POST', `/packets/${parent.id}/chain`, packetRequest());
    await on.call(key, 'PATCH', `/packets/${id}`, { status: 'awaiting_human', hitl: refund });
    const { page } = await on.signIn(t, '/packets', key);
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
    const { key } = await newTenant(on.service, { tier: 'business' });
    const { id } = await on.call(key, 'POST', '/packets', packetRequest());
    const { page } = await on.signIn(t, `/packets/${id}`, key);
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
    assert.equal((await on.call(key, 'GET', `/packets/${id}`)).claimed_by.agent_id, 'resolver');
    await run('Release', 'The packet is released.');
    await on.call(key, 'PATCH', `/packets/${id}`, { status: 'awaiting_human', hitl: refund });
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
    assert.equal((await on.call(key, 'GET', `/packets/${id}`)).status, 'expired');
    // A packet of another tenant looks like one that does not exist.
    const other = await newTenant(on.service);
    const foreign = await on.call(other.key, 'POST', '/packets', packetRequest());
    await go(page, `/packets/${foreign.id}`);
    await heading(page, 'Packet not found').waitFor();
  });

  test('packets are listed, filtered, searched and shown as a board; of hundreds only visible rows are rendered', async (t) => {
    const { key } = await newTenant(on.service, { tier: 'business' });
    const packets = Array.from({ length: 100 }, (_, index) => packetRequest({ context: { summary: `packet number ${index}` } }));
    for (let batch = 0; batch < 3; batch += 1) await on.call(key, 'POST', '/packets/batch', { packets });
    const asked = await on.ask(key, refund, { context: { summary: 'a zebra crossed' } });
    const { page } = await on.signIn(t, '/packets', key);
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
    await on.call(key, 'POST', `/packets/${asked}/respond`, { response: 'Approve', responded_by: 'dana' });
    await column.getByText('none').waitFor();
  });

  test('a list of packets is scrolled to its end by adding only visible rows, page by page', async (t) => {
    const { key } = await newTenant(on.service, { tier: 'business' });
    const packets = Array.from({ length: 100 }, (_, index) => packetRequest({ context: { summary: `row ${index}` } }));
    for (let batch = 0; batch < 10; batch += 1) await on.call(key, 'POST', '/packets/batch', { packets });
    const { page } = await on.signIn(t, '/packets', key);
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

  test('overdue packets are marked in the list, the inbox and on their page, counted in the overview, and filtered; so are those for later', async (t) => {
    const { key } = await newTenant(on.service, { tier: 'business' });
    const titled = (summary: string, more: object) => on.call(key, 'POST', '/packets', packetRequest({ context: { summary }, ...more }));
    const { id } = await titled('too late', { due_at: '2026-01-01' });
    await titled('in time', { due_at: '2099-01-01' });
    await titled('later on', { not_before: new Date(on.service.clock.read().getTime() + 86_400_000).toISOString() });
    await on.call(key, 'PATCH', `/packets/${id}`, { status: 'awaiting_human', hitl: refund });
    await on.service.handoff.runOnce.sweep();
    const { page } = await on.signIn(t, '/overview', key);
    await page.getByRole('link', { name: '1', exact: true }).first().waitFor();
    await go(page, '/inbox');
    await page.getByText('overdue', { exact: true }).first().waitFor();
    await go(page, `/packets/${id}`);
    await page.getByText('overdue', { exact: true }).first().waitFor();
    await go(page, '/packets?overdue=true&order=due');
    await page.getByText('1 packet', { exact: true }).waitFor();
    await page.getByText('too late').waitFor();
    await go(page, '/packets?scheduled=true');
    await page.getByText('later on').waitFor();
    await page.getByText(/^starts in /).waitFor();
    assert.equal(await page.getByText('too late').count(), 0);
    await assertAccessible(page);
  });

  test('a schedule shows its next times in the time zone of the viewer, and runs now', async (t) => {
    const { key } = await newTenant(on.service, { tier: 'business' });
    await on.call(key, 'PUT', '/schedules/a%2Fb', { cron: '0 9 * * 1', timezone: 'Asia/Kathmandu', packet: packetRequest() });
    const { page } = await on.signIn(t, '/schedules', key);
    await page.getByRole('link', { name: 'a/b' }).click();
    const { times } = await on.call(key, 'GET', '/schedules/a%2Fb/next?count=10');
    const shown = page.locator('ol time');
    await shown.nth(9).waitFor();
    assert.equal(await shown.first().getAttribute('datetime'), times[0]);
    const local = await page.evaluate<string>(
      `new Intl.DateTimeFormat(undefined, { minute: '2-digit' }).format(new Date(${JSON.stringify(times[0])}))`,
    );
    assert.match((await shown.first().textContent()) ?? '', new RegExp(`:${local.padStart(2, '0')}`));
    await button(page, 'Run now').click();
    await page.getByText('A packet is made.').waitFor();
    assert.equal((await on.call(key, 'GET', '/packets')).packets[0].metadata.schedule.name, 'a/b');
    await assertAccessible(page);
  });

  test('the agents show the contract of each, with an example to copy', async (t) => {
    const { page, key } = await on.signIn(t, '/agents');
    await on.call(key, 'PUT', '/agents/resolver/contract', {
      schema: { properties: { context: { required: ['custom'] } } },
      description: 'Refunds need the <b>order</b>.',
      examples: [{ context: { summary: 'A refund', custom: { order_id: 'ORD-1' } } }],
    });
    await on.call(key, 'POST', '/packets', packetRequest({ context: { summary: 'A refund', custom: {} } }));
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
    const { key } = await newTenant(on.service, { tier: 'business' });
    await on.ask(key, refund);
    for (let index = 0; index < 3; index += 1) await on.call(key, 'POST', '/packets', packetRequest());
    const { id } = await on.call(key, 'POST', '/packets', packetRequest());
    await on.call(key, 'POST', `/packets/${id}/claim`, { agent_id: 'resolver' });
    await on.call(key, 'PATCH', `/packets/${id}`, { status: 'completed' });
    const { page } = await on.signIn(t, '/overview', key);
    const panel = (name: string) => page.locator('section', { has: page.getByRole('heading', { level: 2, name, exact: true }) }).last();
    await panel('Questions').getByRole('link', { name: '1', exact: true }).waitFor();
    await panel('Work').getByRole('link', { name: '3', exact: true }).waitFor();
    await panel('Done by hour').getByText('Completed 1').waitFor();
    for (const name of ['Waiting, held and asked', 'Done by hour', 'Created by hour']) await page.getByRole('slider', { name }).waitFor();
    const created = page.getByRole('slider', { name: 'Created by hour' });
    await created.focus();
    await page.keyboard.press('Home');
    assert.match((await created.getAttribute('aria-valuetext')) ?? '', /^\d\d:\d\d: .+ \d+/);
    await page.keyboard.press('End');
    const [ofKeyboard] = [await created.getAttribute('aria-valuetext')];
    await page.keyboard.press('Escape');
    assert.match((await created.getAttribute('aria-valuetext')) ?? '', /^now: /);
    const { x, y, width, height } = await boxOf(created);
    await page.mouse.move(x + width - 2, y + height / 2);
    assert.equal(await created.getAttribute('aria-valuetext'), ofKeyboard);
    await button(page, 'Show as a table').click();
    const rows = page.getByRole('table', { name: 'By hour' }).getByRole('row');
    assert.equal(await rows.count(), 26, 'a heading, a day and the hour that runs');
    assert.match((await rows.nth(1).textContent()) ?? '', /51000301$/);
    await assertAccessible(page);
    await button(page, 'Last week').click();
    await page.waitForURL('**/overview?period=week');
    await rows.nth(169).waitFor();
  });

  test('a dialog begins anew for another item; the board leads to the list with its filters; all of a long message is shown on demand', async (t) => {
    const { key } = await newTenant(on.service, { tier: 'business' });
    const packets = Array.from({ length: 31 }, () => packetRequest({ metadata: { ...createExample.metadata, tags: ['board'] } }));
    await on.call(key, 'POST', '/packets/batch', { packets });
    await on.call(key, 'POST', '/packets', packetRequest());
    const hostile = 'a_'.repeat(50_000);
    const conversation_state = [{ role: 'user', content: hostile }];
    const parent = await on.call(key, 'POST', '/packets', packetRequest({ context: { summary: 'long', conversation_state } }));
    const child = await on.call(key, 'POST', `/packets/${parent.id}/chain`, packetRequest({ context: { summary: 'the next one' } }));
    for (const [id, responder] of [
      [parent.id, 'dana@example.com'],
      [child.id, 'kim@example.com'],
    ])
      await on.call(key, 'PATCH', `/packets/${id}`, { status: 'awaiting_human', hitl: { ...refund, responder } });
    for (const name of ['one', 'two']) await on.call(key, 'POST', '/keys', { name });
    const { page } = await on.signIn(t, `/packets/${parent.id}`, key);
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
}
