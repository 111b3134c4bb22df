import assert from 'node:assert/strict';
import { test } from 'node:test';

import { refund, type TestConsole } from '../../support/console.ts';
import { assertPresentable, assertSmallPage, go, maxPageSize } from '../../support/dashboard.ts';
import { adminKey, newTenant, packetRequest } from '../../support/service.ts';

/** Tests of every page. */
export function shellTests(on: TestConsole): void {
  test('without the service what is loaded stays, with a message that disappears when it answers again', async (t) => {
    const { key } = await newTenant(on.service, { tier: 'business' });
    await on.ask(key, refund);
    const { page } = await on.signIn(t, '/inbox', key);
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
      const tenant = await newTenant(on.service, { tier: 'business' });
      const agent = { id: text, name: text, framework: text };
      const id = await on.ask(
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
      await on.call(tenant.key, 'POST', '/keys', { name: text, responder: text });
      const fields = { type: 'object', properties: { [text]: { type: 'string', title: text, description: text, enum: [text] } } };
      const form = await on.ask(tenant.key, { required: true, reason: text, question: text, schema: fields });
      const { page } = await on.signIn(t, '/inbox', tenant.key);
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
    const tenant = await newTenant(on.service, { tier: 'business' });
    const id = await on.ask(adminKey, refund, {
      context: { summary: 'Shown.', conversation_state: [{ role: 'user', content: '# A\n\n- **b**\n\n| c |\n|---|\n| d |' }] },
    });
    await on.call(adminKey, 'POST', `/packets/${id}/chain`, packetRequest());
    const hook = await on.call(adminKey, 'POST', '/hooks', { url: 'http://127.0.0.1:9/hook', secret: 'a-secret-of-16-or-more' });
    await on.call(adminKey, 'POST', `/hooks/${hook.id}/ping`);
    const schedule = { cron: '0 9 * * 1', timezone: 'Europe/Berlin', packet: packetRequest() };
    await on.call(adminKey, 'PUT', '/schedules/weekly', schedule);
    const rules = [{ then: { ask: [{ from: ['group:support'] }] } }];
    await on.call(adminKey, 'PUT', '/policies/refunds', { mode: 'shadow', match: { tools: ['refund'] }, rules });
    await on.call(adminKey, 'PUT', '/groups/board', { members: ['dana@example.com', 'eli@example.com'] });
    await on.call(adminKey, 'PUT', '/delegations/dana@example.com', { to: 'eli@example.com', until: '2126-03-01T00:00:00Z' });
    const { page } = await on.signIn(t, '/nowhere', adminKey);
    for (const [path, ready] of [
      ['/nowhere', 'mistyped'],
      ['/inbox', 'Refund 42 EUR?'],
      [`/packets/${id}`, 'This packet'],
      ['/packets', /^\d+ packets$/],
      ['/packets?view=board&priority=normal', 'in progress'],
      ['/agents', 'Waiting longest'],
      ['/overview', 'Failing receivers'],
      ['/policies', '0 asked, 0 approved'],
      ['/schedules', 'weekly'],
      ['/schedules/weekly', 'Its next times'],
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

  test('policies are published, changed and removed as JSON, and a refusal stays with the form', async (t) => {
    const { key } = await newTenant(on.service, { tier: 'business' });
    const { page } = await on.signIn(t, '/policies', key);
    await page.getByText('No policies yet').waitFor();
    const publish = page.getByRole('button', { name: 'Publish' }).first();
    await page.getByRole('button', { name: 'New policy' }).click();
    await page.getByLabel('Name').fill('refunds');
    await publish.click();
    await page.getByText('asks the group support, which does not exist').waitFor();
    await page.getByRole('button', { name: 'Edit refunds' }).click();
    const text = page.getByLabel('Policy, as JSON');
    for (const refused of ['{"rules": [{"then": {"ask": []}}]}', '{"rules": ']) {
      await text.fill(refused);
      await publish.click();
      await page.getByText('The request was rejected.').waitFor();
    }
    await page.getByText('The policy is not valid JSON.').waitFor();
    await text.fill('{"rules": [{"then": {"reject": "never"}}], "order": 7}');
    await publish.click();
    await page.getByRole('cell', { name: '7', exact: true }).waitFor();
    assert.equal((await on.call(key, 'GET', '/policies/refunds')).version, 2);
    await page.getByRole('button', { name: 'Remove refunds' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).first().click();
    await page.getByText('No policies yet').waitFor();
  });

  test('a policy is tried, and replayed on past actions before it is published; groups and delegations are made, changed and removed', async (t) => {
    const { id: tenant_id } = await newTenant(on.service, { tier: 'business' });
    const make = async (rights: object) => (await on.call(adminKey, 'POST', '/keys', { name: 'k', tenant_id, ...rights })).key as string;
    const agent = await make({ scopes: ['read', 'work'], agents: ['refunds'] });
    const person = await make({ scopes: ['read', 'respond'], responder: 'dana' });
    const action = { tool: 'refund', arguments: { amount: 20 } };
    const { id } = await on.call(agent, 'POST', '/approvals', { agent: { id: 'refunds' }, action });
    await on.call(person, 'POST', `/packets/${id}/respond`, { decision: 'reject', responded_by: 'dana' });
    const { page } = await on.signIn(t, '/policies', await make({ scopes: ['read', 'manage'] }));
    const button = (name: string) => page.getByRole('button', { name, exact: true });
    const inDialog = (name: string) => page.getByRole('dialog').getByRole('button', { name, exact: true }).first();

    await button('New policy').click();
    const text = page.getByLabel('Policy, as JSON');
    await text.fill('{"rules": [');
    await button('Replay on past actions').click();
    await page.getByText('The policy is not valid JSON.').waitFor();
    const small = { properties: { arguments: { properties: { amount: { type: 'number', maximum: 50 } }, required: ['amount'] } } };
    const rules = [{ when: small, then: { approve: 'small' } }, { then: { ask: [{ from: ['group:finance'], count: 2 }] } }];
    await text.fill(JSON.stringify({ match: { tools: ['refund'] }, rules }));
    await button('Replay on past actions').click();
    await page.getByRole('cell', { name: 'approve, by rule 1' }).waitFor();
    await page.getByText('What a policy may have').click();
    await page.getByText('"shadow": decides nothing').waitFor();
    await assertPresentable(page);
    assert.deepEqual((await on.call(agent, 'GET', '/policies')).policies, [], 'nothing is published yet');
    await page.getByLabel('Name').fill('refunds');
    await inDialog('Publish').click();
    await page.getByText('asks the group finance, which does not exist').waitFor();

    await button('Try').click();
    await page.getByLabel('Agent').fill('refunds');
    await page.getByLabel('Tool').fill('refund');
    await page.getByLabel('Arguments, as JSON').fill('{"amount": 500}');
    await page.getByLabel('Tool').press('Enter');
    await page.getByText('refunds, rule 2: asks group:finance, 2 of them.').waitFor();
    await page.getByText('arguments.amount', { exact: true }).waitFor();
    await assertPresentable(page);
    await inDialog('Close').click();

    await button('New group').click();
    await page.getByLabel('Name').fill('finance');
    await page.getByLabel('Members').fill('dana\n\n  eli ');
    await inDialog('Save').click();
    await page.getByRole('cell', { name: 'dana, eli' }).waitFor();
    await page.getByText('which does not exist').waitFor({ state: 'detached' });
    await button('Edit finance').click();
    await page.getByLabel('Members').fill('dana');
    await inDialog('Save').click();
    await page.getByRole('cell', { name: 'dana', exact: true }).waitFor();

    await button('New delegation').click();
    await page.getByLabel('Who is away').fill('dana');
    await page.getByLabel('Who approves instead').fill('eli');
    await inDialog('Save').click();
    await page.getByText('Until needs a time.').waitFor();
    await page.getByLabel('Until').fill('2126-03-01T12:00');
    await inDialog('Save').click();
    await button('Edit the delegation of dana').click();
    await page.getByLabel('Reason (optional)').fill('On leave');
    await assertPresentable(page);
    await inDialog('Save').click();
    await page.getByRole('cell', { name: 'On leave' }).waitFor();
    for (const [label, empty] of [
      ['the delegation of dana', 'Nobody is away'],
      ['finance', 'No groups yet'],
    ] as const) {
      await button(`Remove ${label}`).click();
      await inDialog('Remove').click();
      await page.getByText(empty).waitFor();
    }
  });

  test('a table is sorted by the button of a heading, also by keyboard, and has pages', async (t) => {
    for (let index = 0; index < 60; index += 1) await on.call(adminKey, 'POST', '/tenants', { name: `Row ${index}`, tier: 'pro' });
    const { page } = await on.signIn(t, '/tenants', adminKey);
    const names = async () => (await page.getByRole('rowheader').allTextContents()).filter((name) => name.startsWith('Row '));
    const heading = page.getByRole('columnheader', { name: 'Tenant' });
    await heading.getByRole('button').focus();
    await page.keyboard.press('Enter');
    await page.locator('th[aria-sort="ascending"]').waitFor();
    assert.deepEqual((await names()).slice(0, 3), ['Row 0', 'Row 1', 'Row 2']);
    await heading.getByRole('button').click();
    await page.locator('th[aria-sort="descending"]').waitFor();
    assert.equal((await names())[0], 'Row 59');
    await page.getByRole('button', { name: 'Next' }).click();
    await page.getByText(/^51 to \d+ of \d+$/).waitFor();
    assert.equal((await names()).at(-1), 'Row 0');
    await assertPresentable(page);
  });

  test(`the first page needs at most ${maxPageSize} KB, and its policy demands Trusted Types`, async (t) => {
    const { page } = await on.signIn(t, '/inbox');
    await assertSmallPage(t, page);
    const policy = (await fetch(`${on.pages.address}/console`)).headers.get('content-security-policy') ?? '';
    assert.match(policy, /default-src 'none'.*require-trusted-types-for 'script'; trusted-types 'none'/);
    // In a page that may log errors.
    const trial = await on.browser.newPage();
    await trial.goto(`${on.pages.address}/console`);
    await assert.rejects(trial.evaluate(`document.body.innerHTML = '<b>x</b>'`), /TrustedHTML/);
    await trial.close();
  });
}
