import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createExample } from '../../../src/handoff/model/examples.ts';
import { refund, type TestConsole } from '../../support/console.ts';
import { assertAccessible, boxOf, button, go, heading } from '../../support/dashboard.ts';
import { adminKey, newTenant, packetRequest } from '../../support/service.ts';

/** Tests of keys and what they may do. */
export function keyTests(on: TestConsole): void {
  test('a key that may only read and respond sees no page for those who manage; at 390 pixels every link is in sight; a channel says where its links lead', async (t) => {
    const { key } = await newTenant(on.service, { tier: 'business' });
    const { key: narrow } = await on.call(key, 'POST', '/keys', { name: 'dana', scopes: ['read', 'respond'], responder: 'dana' });
    const { page } = await on.signIn(t, '/', narrow);
    await page.waitForURL('**/inbox');
    const links = page.getByRole('navigation', { name: 'Main' }).getByRole('link');
    await page.getByRole('navigation', { name: 'Main' }).getByText('Webhooks').waitFor({ state: 'detached' });
    assert.deepEqual(await links.allTextContents(), ['Overview', 'Inbox', 'Packets', 'Agents', 'Policies', 'Schedules', 'Audit']);
    const { key: manager } = await on.call(key, 'POST', '/keys', { name: 'manager', scopes: ['manage'] });
    await page.goto(`${on.pages.address}/console`);
    await on.enterKey(page, manager);
    await page.waitForURL('**/webhooks');
    const { page: whole } = await on.signIn(t, '/channels', adminKey);
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
    for (const { id } of await on.call(adminKey, 'GET', '/channels')) await on.call(adminKey, 'DELETE', `/channels/${id}`);
  });

  test('a key is created with fewer rights, shown once and revoked; the audit log is downloaded without formulas, and filtered by the words that it shows', async (t) => {
    const { page, key } = await on.signIn(t, '/keys');
    const dialog = page.getByRole('dialog');
    await button(page, 'New key').click();
    await dialog.getByLabel('What it is for').fill('=cmd()');
    for (const scope of ['work', 'manage']) await dialog.getByLabel(scope, { exact: true }).uncheck();
    await dialog.getByLabel('Answers only as').fill('dana');
    await page.keyboard.press('Enter');
    const made = (await page.getByRole('dialog', { name: 'The new key' }).locator('code').textContent()) ?? '';
    const own = await on.call(made, 'GET', '/keys/self');
    assert.deepEqual([own.scopes, own.responder], [['read', 'respond'], 'dana']);
    await dialog.getByRole('button', { name: 'Done' }).click();
    await page.getByText('read, respond').waitFor();
    assert.ok(!(await page.content()).includes(made), 'the key is not kept');
    await button(page, 'Revoke =cmd()').click();
    await dialog.getByRole('button', { name: 'Revoke' }).first().click();
    await button(page, 'Revoke =cmd()').waitFor({ state: 'detached' });
    assert.equal((await on.service.call('GET', '/keys/self', { key: made })).status, 401);

    const { id } = await on.call(key, 'POST', '/packets', packetRequest());
    await on.service.call('POST', `/packets/${id}/claim`, { key, body: { agent_id: '@SUM(1)' } });
    await page.getByRole('link', { name: 'Audit' }).click();
    await page.getByText('agent:@SUM(1)').first().waitFor();
    for (const [name, pattern] of [
      ['CSV', /^\uFEFFtimestamp,action,resource,.*\r\n[\s\S]*claimed,packet,/],
      ['JSON Lines', /^\{"header":.*\}\n\{"position":1,[\s\S]*"type":"claimed"[\s\S]*\n\{"head":.*\}\n$/],
    ] as const) {
      const [download] = await Promise.all([page.waitForEvent('download'), button(page, name).click()]);
      let text = '';
      for await (const chunk of await download.createReadStream()) text += chunk;
      assert.match(text, pattern);
    }
    await on.call(key, 'POST', `/packets/${await on.ask(key, refund)}/answer-links`, {});
    await page.getByLabel('Action').fill('answer link created');
    await page.getByText('agent:@SUM(1)').first().waitFor({ state: 'detached' });
    await page.getByRole('cell', { name: 'answer link created' }).waitFor();
  });

  test('the audit log is filtered by person, key, data and time, in the address, and a download has what the filters select', async (t) => {
    const { page, key } = await on.signIn(t, '/keys');
    const subjects = ['customer:4711'];
    const about = await on.call(key, 'POST', '/packets', packetRequest({ metadata: { ...createExample.metadata, subjects } }));
    const other = await on.call(key, 'POST', '/packets', packetRequest());
    const { id: keyId, key: second } = await on.call(key, 'POST', '/keys', { name: 'second' });
    await on.call(second, 'POST', `/packets/${other.id}/claim`, { agent_id: 'resolver' });
    await page.getByRole('link', { name: 'Audit' }).click();
    const rows = page.getByRole('table', { name: 'Audit log' }).locator('tbody').getByRole('row');
    const linkTo = ({ id }: { id: string }) => rows.getByRole('link', { name: id.slice(-8) });
    await linkTo(other).first().waitFor();

    await page.getByLabel('Data of (id)').fill('customer:4711');
    await linkTo(other).first().waitFor({ state: 'detached' });
    assert.equal(await rows.count(), 1);
    await linkTo(about).waitFor();
    assert.equal(new URL(page.url()).searchParams.get('subject'), 'customer:4711');
    const [download] = await Promise.all([page.waitForEvent('download'), button(page, 'JSON Lines').click()]);
    let text = '';
    for await (const chunk of await download.createReadStream()) text += chunk;
    const lines = text.trimEnd().split('\n');
    const [{ header }, entry, { head }] = lines.map((line) => JSON.parse(line));
    assert.deepEqual([lines.length, Object.keys(header.filter), entry.packet_id], [3, ['subject_digest'], about.id]);
    assert.equal(head.tenant_id, header.tenant_id);

    await page.getByLabel('Data of (id)').fill('');
    await page.getByLabel('Key (id)').fill(keyId);
    await page.getByRole('cell', { name: 'claimed' }).waitFor();
    await linkTo(about).first().waitFor({ state: 'detached' });
    assert.equal(await rows.count(), 1);
    await page.getByLabel('Key (id)').fill('');
    await linkTo(about).first().waitFor();
    await page.getByLabel('Signed-in person').fill('https://idp.example nobody');
    await page.getByText('No entries match').waitFor();
    await page.getByLabel('Signed-in person').fill('');
    await page.getByLabel('Before', { exact: true }).fill('2020-01-01T00:00');
    await page.getByText('No entries match').waitFor();
    // The filters are in the address, so a link to them shows the same.
    await page.reload();
    await on.enterKey(page, key);
    await page.getByText('No entries match').waitFor();
    await page.getByLabel('Before', { exact: true }).fill('');
    await linkTo(about).first().waitFor();
    await assertAccessible(page);
  });

  test('the key stays in memory, or in the tab if the person wants it so; it is never in an address, and a revoked key is asked for again', async (t) => {
    const { key, id } = await newTenant(on.service);
    const addresses: string[] = [];
    const page = await on.pages.open(t, '/inbox');
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
    await page.keyboard.press('Enter');
    await page.getByText('No open questions').waitFor();
    assert.ok(!(await page.evaluate<string>('JSON.stringify([{ ...sessionStorage }, { ...localStorage }])')).includes(key));
    await page.reload();
    await page.getByLabel('Key', { exact: true }).fill(key);
    await page.getByLabel('Keep it in this tab until it is closed').check();
    await page.getByLabel('Key', { exact: true }).press('Enter');
    await page.getByText('No open questions').waitFor();
    assert.ok((await page.evaluate<string>('JSON.stringify({ ...sessionStorage })')).includes(key));
    assert.ok(!(await page.evaluate<string>('JSON.stringify({ ...localStorage })')).includes(key));
    await page.reload();
    await page.getByText('No open questions').waitFor();
    const [own] = await on.call(adminKey, 'GET', `/tenants/${id}/keys`);
    await on.call(adminKey, 'DELETE', `/keys/${own.id}`);
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
    const { key } = await newTenant(on.service, { tier: 'business' });
    const id = await on.ask(key, refund);
    const reader = await on.call(key, 'POST', '/keys', { name: 'reader', scopes: ['read'] });
    const { page } = await on.signIn(t, `/packets/${id}`, reader.key);
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
}
