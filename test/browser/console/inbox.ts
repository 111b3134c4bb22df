import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';

import { question, refund, type TestConsole } from '../../support/console.ts';
import { assertAccessible, boxOf, button, focused, go, heading } from '../../support/dashboard.ts';
import { adminKey, newTenant } from '../../support/service.ts';

/** Types the name into the field that has the focus since it was empty, and sends the form. */
async function typeName(page: Page, name: string): Promise<void> {
  await page.getByLabel('Your name').and(page.locator(':focus')).waitFor();
  await page.keyboard.type(name);
  await page.keyboard.press('Enter');
}

/** Tests of questions, answers and the people who give them. */
export function inboxTests(on: TestConsole): void {
  test('a question is on the screen when it is asked, and is answered by keyboard alone; the history names console and digest', async (t) => {
    const { page, key } = await on.signIn(t, '/inbox');
    await page.getByText('No open questions').waitFor();
    await page.getByText('service-cli packets ask').waitFor();
    const id = await on.ask(key, refund);
    await page.getByRole('heading', { name: 'Refund 42 EUR?' }).waitFor();
    await page.waitForFunction(`document.title.startsWith('(1) Inbox')`);
    assert.equal(await page.getByLabel('Your name').inputValue(), '', 'a typed name is prefilled nowhere');
    await page.keyboard.press('2');
    await page.keyboard.press('Enter');
    await typeName(page, 'dana@example.com');
    await page.getByText('The answer is recorded.').waitFor();
    await page.getByText('No open questions').waitFor();
    const { hitl } = await on.call(key, 'GET', `/packets/${id}`);
    assert.equal(hitl.response, 'half');
    assert.equal(hitl.responded_by, 'dana@example.com');
    const { details } = (await on.historyOf(key, id)).at(-1);
    assert.equal(details.via, 'console');
    assert.match(details.digest, /^[0-9a-f]{64}$/);
  });

  test('what is asked about and the options are in sight together; own words and a remark are folded away; the keys can be switched off', async (t) => {
    const { key } = await newTenant(on.service, { tier: 'business' });
    const summary = 'The parcel came late. '.repeat(30);
    const id = await on.ask(key, refund, { context: { summary } });
    const { page } = await on.signIn(t, '/inbox', key);
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
    assert.equal((await on.call(key, 'GET', `/packets/${id}`)).hitl.response, null);
    await page.reload();
    await on.enterKey(page, key);
    await options.waitFor();
    await page.keyboard.press('1');
    assert.equal(await options.getByRole('button', { pressed: true }).count(), 0, 'it stays so');
  });

  test('the timeline says what was asked and answered, with details on demand; an answer of the day is listed with what was seen', async (t) => {
    const { key } = await newTenant(on.service, { tier: 'business' });
    const id = await on.ask(key, { ...refund, responder: undefined }, { context: { summary: 'Charged twice.' } });
    const { page } = await on.signIn(t, '/inbox/answers', key);
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
    await on.call(key, 'PATCH', `/packets/${id}`, { context: { summary: 'Charged once.' } });
    await page.reload();
    await on.enterKey(page, key);
    await button(page, 'What I saw').click();
    await page.getByText('Charged twice.').waitFor();
    assert.equal(await page.getByText('Charged once.').count(), 0);
    await assertAccessible(page);
  });

  test('of many answers of a day no packet is read, and a question only when it is opened', async (t) => {
    const { key } = await newTenant(on.service, { tier: 'business' });
    for (let index = 0; index < 21; index += 1) {
      const id = await on.ask(key, { ...refund, question: `Refund ${index} EUR?` }, { context: { summary: 'Charged twice.' } });
      await on.call(key, 'POST', `/packets/${id}/respond`, { response: 'Approve', responded_by: 'dana' });
    }
    const { page } = await on.signIn(t, '/packets', key);
    await page.evaluate("localStorage.setItem('baton.name', 'dana')");
    const read: string[] = [];
    page.on('request', (request) => {
      if (/\/packets\/[0-9a-f-]{36}/.test(request.url())) read.push(request.url());
    });
    await go(page, '/inbox/answers');
    await page.getByText('Refund 20 EUR?', { exact: true }).waitFor();
    await page.getByText('Refund 1 EUR?', { exact: true }).waitFor();
    await button(page, 'Show earlier answers (1)').click();
    await page.getByText('Refund 0 EUR?', { exact: true }).waitFor();
    assert.deepEqual(read, []);
    await button(page, 'What I saw').first().click();
    await page.getByText('Charged twice.').waitFor();
    assert.equal(read.length, 1);
  });

  test('an answer with an entered name is marked as unverified; only the link that took it is answered; an empty secret is not to be copied', async (t) => {
    const { key } = await newTenant(on.service, { tier: 'business' });
    const id = await on.ask(key, { ...refund, responder: undefined });
    const urls: string[] = [];
    for (let index = 0; index < 3; index += 1)
      urls.push(on.pages.address + new URL((await on.call(key, 'POST', `/packets/${id}/answer-links`, {})).url).pathname);
    const { hitl } = await on.call(key, 'GET', `/packets/${id}`);
    const body = new URLSearchParams({ digest: hitl.digest, option: '0', name: 'Mia' });
    assert.equal((await fetch(urls[0]!, { method: 'POST', body })).status, 200);
    const { page } = await on.signIn(t, `/packets/${id}`, key);
    await page.getByRole('blockquote').getByText('typed, not verified').waitFor();
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

  test('an action is decided about by keyboard, beside its arguments; arguments are changed, and a text that is no object is not sent', async (t) => {
    const { id: tenant_id } = await newTenant(on.service, { tier: 'business' });
    // By the operator, since keys of one family may not ask and answer.
    const make = async (rights: object) => (await on.call(adminKey, 'POST', '/keys', { name: 'k', tenant_id, ...rights })).key as string;
    const agent = await make({ scopes: ['read', 'work'], agents: ['refunds'] });
    const { page } = await on.signIn(t, '/inbox', await make({ scopes: ['read', 'respond'], responder: 'dana' }));
    const ask = async (title: string, more: object = {}) => {
      const action = { tool: 'refund', title, arguments: { amount: 500 }, call_id: title, ...more };
      const { id } = await on.call(agent, 'POST', '/approvals', { agent: { id: 'refunds' }, action, responder: 'dana' });
      await page.getByRole('heading', { name: title }).waitFor();
      await page.getByText('500', { exact: true }).waitFor();
      return id as string;
    };
    const decisionOf = async (id: string) => (await on.call(agent, 'GET', `/packets/${id}`)).hitl.decision;
    const chosen = page.getByRole('group', { name: 'Decisions' }).getByRole('button', { pressed: true });

    const first = await ask('Refund an order');
    await button(page, 'Choose a decision').waitFor();
    await assertAccessible(page);
    await page.keyboard.press('1');
    await chosen.waitFor();
    await page.keyboard.press('Enter');
    await page.getByText('The decision is recorded.').waitFor();
    assert.deepEqual((await decisionOf(first)).arguments, { amount: 500 });

    // Flat arguments are a form, with the titles and choices of their schema; what is left as it was stays as it is.
    const send = button(page, 'Approve with these arguments').last();
    const properties = {
      amount: { title: 'Amount in EUR', type: 'number', maximum: 600 },
      reason: { title: 'Reason', enum: ['late', 'broken'] },
      notify: { type: 'boolean' },
    };
    // A name that all objects have, and a text that is cleared.
    const given = { amount: 500, notify: true, order: ' ORD-1', toString: 'x', note: 'late' };
    const form = await ask('Refund by a form', { schema: { properties, required: ['amount'] }, arguments: given });
    await button(page, 'Choose a decision').waitFor();
    await page.keyboard.press('2');
    await page.getByLabel('Amount in EUR').fill('601');
    await page.getByLabel('Reason').selectOption('broken');
    await page.getByLabel('notify').selectOption('No');
    await page.getByLabel('note').fill('');
    await assertAccessible(page);
    await send.click();
    await page.getByRole('alert').filter({ hasText: '600' }).first().waitFor();
    await page.getByLabel('Amount in EUR').fill('42.5');
    await send.click();
    await page.getByText('No open questions').waitFor();
    const made = { amount: 42.5, notify: false, order: ' ORD-1', toString: 'x', note: '', reason: 'broken' };
    assert.deepEqual((await decisionOf(form)).arguments, made);

    const titled = { schema: { properties: { lines: { title: 'Lines of the order' } } }, arguments: { amount: 500, lines: [1] } };
    const second = await ask('Refund another order', titled);
    await button(page, 'Choose a decision').waitFor();
    await page.keyboard.press('2');
    const text = page.getByLabel('Arguments, as JSON');
    await page.getByText('lines: Lines of the order').waitFor();
    await text.fill('[42]');
    await send.click();
    await page.getByText('The arguments must be a JSON object.').waitFor();
    assert.equal(await decisionOf(second), undefined);
    await text.fill('{"amount": 42}');
    await send.click();
    await page.getByText('No open questions').waitFor();
    assert.deepEqual((await decisionOf(second)).arguments, { amount: 42 });

    // Who is missing in a step, with the members of its groups.
    const manager = await make({ scopes: ['read', 'respond', 'manage'], responder: 'eli' });
    await on.call(manager, 'PUT', '/groups/finance', { members: ['dana', 'eli', 'fay'] });
    await on.call(manager, 'PUT', '/policies/two', { rules: [{ then: { ask: [{ from: ['group:finance'], count: 3 }] } }] });
    const two = await ask('Refund by three');
    await page.getByText('Not yet: dana, eli, fay.').waitFor();
    await on.call(manager, 'POST', `/packets/${two}/respond`, { decision: 'approve', responded_by: 'eli' });
    await page.getByText('1 of 3 have approved. Asked: group:finance. Not yet: dana, fay.').waitFor();
    await on.call(manager, 'DELETE', '/policies/two');
    await on.call(await make({ scopes: ['read', 'respond'], responder: 'fay' }), 'POST', `/packets/${two}/respond`, {
      ...{ decision: 'reject', responded_by: 'fay' },
    });
    await page.getByText('No open questions').waitFor();

    // An approval that stands: the next call is asked about no more, until its person revokes it.
    await ask('Refund a third order');
    await button(page, 'Choose a decision').waitFor();
    await page.keyboard.press('1');
    await chosen.waitFor();
    await page.getByLabel('Approve later too').selectOption('Any call of refund');
    await page.getByLabel('For', { exact: true }).selectOption('7 days');
    await assertAccessible(page);
    await button(page, 'Approve').last().click();
    await page.getByText('No open questions').waitFor();
    const action = { tool: 'refund', arguments: { amount: 7 } };
    const later = await on.call(agent, 'POST', '/approvals', { agent: { id: 'refunds' }, action });
    assert.deepEqual([later.status, later.hitl.decision.by[0].name], ['claimed', 'dana']);
    await go(page, '/policies');
    await page.getByRole('cell', { name: 'any arguments' }).waitFor();
    await button(page, 'Remove the approval of refund by dana').click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).first().click();
    await page.getByText('No approval stands').waitFor();
    assert.equal((await on.call(agent, 'POST', '/approvals', { agent: { id: 'refunds' }, action })).status, 'awaiting_human');
  });

  test('where only verified names count, a key without a person is told before it answers [H429]', async (t) => {
    const { id: tenant_id } = await newTenant(on.service, { tier: 'business' });
    const make = async (rights: object) => (await on.call(adminKey, 'POST', '/keys', { name: 'k', tenant_id, ...rights })).key as string;
    const agent = await make({ scopes: ['read', 'work'], agents: ['refunds'] });
    const manager = await make({});
    await on.call(manager, 'PUT', '/policies/refunds', { match: { tools: ['refund'] }, rules: [{ then: { ask: [{ from: ['dana'] }] } }] });
    const told = 'An answer with this key will be refused.';
    const ask = (call_id: string, tool: string) =>
      on.call(agent, 'POST', '/approvals', { agent: { id: 'refunds' }, action: { tool, title: call_id, call_id, arguments: {} } });
    await ask('By policy', 'refund');
    const nameless = await on.signIn(t, '/inbox', await make({ scopes: ['read', 'respond'] }));
    await nameless.page.getByRole('heading', { name: 'By policy' }).waitFor();
    await nameless.page.getByText(told).waitFor();
    await assertAccessible(nameless.page);
    const dana = await on.signIn(t, '/inbox', await make({ scopes: ['read', 'respond'], responder: 'dana' }));
    await button(dana.page, 'Choose a decision').waitFor();
    assert.equal(await dana.page.getByText(told).count(), 0);
  });

  test('j and k move between questions, oldest first; ? shows the keys; a dangerous option is asked once more; Enter opens the packet', async (t) => {
    const { key } = await newTenant(on.service, { tier: 'business' });
    const ids = [];
    for (const text of ['First?', 'Second?', 'Third?']) ids.push(await on.ask(key, { ...refund, question: text }));
    const { page } = await on.signIn(t, '/inbox', key);
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
    await typeName(page, 'Dana');
    const dialog = page.getByRole('dialog', { name: 'Send this answer?' });
    await focused(dialog);
    assert.equal((await on.call(key, 'GET', `/packets/${ids[1]}`)).hitl.response, null);
    await assertAccessible(page);
    // The safe button has the focus, so that a key that repeats does not confirm.
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByText('The answer is recorded.').waitFor();
    await dialog.waitFor({ state: 'detached' });
    assert.equal((await on.call(key, 'GET', `/packets/${ids[1]}`)).hitl.response, 'reject');
    await selected.getByText('Third?').waitFor();
    await page.keyboard.press('k');
    await page.keyboard.press('Enter');
    await heading(page, 'Packet').waitFor();
    assert.equal(new URL(page.url()).pathname, `/console/packets/${ids[0]}`);
  });

  test('an answer to a question that has changed is not recorded: the choice is dropped, and the page says so', async (t) => {
    const { page, key } = await on.signIn(t, '/inbox');
    const id = await on.ask(key, refund);
    await page.getByRole('heading', { name: 'Refund 42 EUR?' }).waitFor();
    await page.keyboard.press('1');
    // The change arrives by stream while the person reads.
    await on.call(key, 'PATCH', `/packets/${id}`, { context: { summary: 'The customer has 17 refunds this month.' } });
    await page.getByText('The question has changed since you opened it.').waitFor();
    // In the list, and beside the question.
    await page.getByText('17 refunds').nth(1).waitFor();
    assert.equal(await page.locator('[aria-pressed=true]').count(), 0);
    // The change is committed while the answer is on its way.
    await page.route('**/respond', async (route) => {
      await on.call(key, 'PATCH', `/packets/${id}`, { hitl: { question: 'Refund 4,200 EUR?' } });
      await route.fallback();
    });
    await page.keyboard.press('1');
    await page.keyboard.press('Enter');
    await typeName(page, 'Dana');
    await page.getByRole('heading', { name: 'Refund 4,200 EUR?' }).waitFor();
    await page.getByText('The question has changed since you').first().waitFor();
    const { hitl, status } = await on.call(key, 'GET', `/packets/${id}`);
    assert.deepEqual([status, hitl.response], ['awaiting_human', null]);
  });

  test('the inbox keeps the oldest 1,000 questions while events bring others; it says what each is about and keeps a filter that nothing matches', async (t) => {
    const { key } = await newTenant(on.service, { tier: 'business' });
    await on.ask(key, { ...refund, question: 'Asked first?' }, { context: { summary: 'The parcel came late.' } });
    const page = await on.pages.open(t, '/inbox');
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
    await on.enterKey(page, key);
    await page.getByText('The oldest 1000 questions are shown.').waitFor();
    const list = page.getByRole('list', { name: 'Open questions' });
    assert.equal(await list.getByRole('listitem').count(), 1000);
    await list.getByText('The parcel came late.').first().waitFor();
    for (const question of ['Second?', 'Third?']) {
      await on.ask(key, { ...refund, question });
      await list.getByText(question).waitFor();
    }
    await page.getByRole('heading', { level: 2, name: 'Asked first?' }).waitFor();
    assert.equal(await list.getByRole('listitem').count(), 1000);
    assert.match(await page.title(), /^\(1000\) Inbox/);
    await go(page, '/inbox?tag=gone');
    await page.getByText('No open question matches the filters').waitFor();
    assert.equal(await page.getByLabel('Tag').inputValue(), 'gone');
  });

  test('a form shows choices with their titles and defaults, and an option beside it declines it [H462]', async (t) => {
    const { page, key } = await on.signIn(t, '/inbox');
    const schema = {
      type: 'object',
      required: ['plan'],
      properties: {
        plan: { enum: ['basic', 'plus'], enumNames: ['Basic plan', 'Plus plan'] },
        tags: {
          type: 'array',
          title: 'Tags',
          items: {
            anyOf: [
              { const: 'a', title: 'Tag A' },
              { const: 'b', title: 'Tag B' },
            ],
          },
          default: ['b'],
        },
        amount: { type: 'number', title: 'Amount', default: 7.5 },
      },
    };
    const asked = { ...question, question: 'Which plan?', schema, options: ['Decline'] };
    const id = await on.ask(key, asked);
    await page.getByLabel('plan').selectOption({ label: 'Plus plan' });
    assert.equal(await page.getByLabel('Amount (optional)').inputValue(), '7.5');
    assert.ok(await page.getByLabel('Tag B').isChecked());
    await page.getByLabel('Tag A').check();
    await assertAccessible(page);
    await page.getByLabel('Your name').fill('Dana');
    await button(page, 'Send answer').click();
    await page.getByText('The answer is recorded.').waitFor();
    assert.deepEqual((await on.call(key, 'GET', `/packets/${id}`)).hitl.data, { plan: 'plus', tags: ['b', 'a'], amount: 7.5 });
    const next = await on.ask(key, asked);
    await page.getByRole('button', { name: 'Decline' }).click();
    await page.getByLabel('Your name').fill('Dana');
    await button(page, 'Send answer').click();
    await page.getByText('No open questions').waitFor();
    const { hitl } = await on.call(key, 'GET', `/packets/${next}`);
    assert.deepEqual([hitl.response, hitl.data], ['Decline', undefined]);
  });

  test('a question with a schema is answered by a form; a fault is shown beside its field', async (t) => {
    const { page, key } = await on.signIn(t, '/inbox');
    const properties = {
      amount: { type: 'number', title: 'Amount', maximum: 50 },
      method: { type: 'string', enum: ['card', 'bank'] },
      notify: { type: 'boolean', title: 'Notify' },
    };
    const id = await on.ask(key, { ...question, question: 'How much?', schema: { type: 'object', properties, required: ['amount'] } });
    await page.goto(`${on.pages.address}/console/packets/${id}`);
    await on.enterKey(page, key);
    await page.getByLabel('Amount').fill('51');
    await page.getByLabel('method (optional)').selectOption('bank');
    await page.getByLabel('Notify (optional)').selectOption('Yes');
    await page.getByLabel('Your name').fill('Dana');
    await button(page, 'Send answer').click();
    await page.getByText('Can be at most 50.').waitFor();
    await assertAccessible(page);
    await page.getByLabel('Amount').fill('41.5');
    await page.getByLabel('Amount').press('Enter');
    await page.getByText('The answer is recorded.').waitFor();
    assert.deepEqual((await on.call(key, 'GET', `/packets/${id}`)).hitl.data, { amount: 41.5, method: 'bank', notify: true });
    await page.getByText('41.5').first().waitFor();
  });

  test('Enter answers or opens the question that has the focus, also in a narrow window, and never sends a form without an entry', async (t) => {
    const { key } = await newTenant(on.service, { tier: 'business' });
    const ids = [];
    for (const text of ['First?', 'Second?', 'Third?']) {
      const schema = { type: 'object', properties: { amount: { type: 'number', title: 'Amount' } } };
      ids.push(await on.ask(key, { ...question, question: text, schema }));
    }
    const { page } = await on.signIn(t, '/inbox', key);
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
    for (const id of ids) assert.equal((await on.call(key, 'GET', `/packets/${id}`)).hitl.response, null);
  });

  test('a new question is notified of while the page is hidden and the browser allows it; an older one is not', async (t) => {
    const { key } = await newTenant(on.service, { tier: 'business' });
    const old = await on.ask(key, { ...refund, question: 'Asked before?' });
    const { page } = await on.signIn(t, '/inbox', key);
    await page.getByText('Asked before?').first().waitFor();
    const origin = { origin: on.pages.address };
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
      await on.ask(key, { ...refund, question: text });
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
    await on.call(key, 'PATCH', `/packets/${old}`, { context: { summary: 'Changed.' } });
    const notes = await shown('New?');
    assert.deepEqual(
      notes.map(([title, , permission]) => [title, permission]),
      [['New?', 'granted']],
    );
    const { packets } = await on.call(key, 'GET', '/packets?status=awaiting_human&limit=1');
    assert.equal(notes[0]![1], packets[0].id);
  });
}
