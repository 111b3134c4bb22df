import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser } from 'playwright-core';

import { assertAccessible, button, type Dashboard, heading, startDashboard } from '../../support/dashboard.ts';
import { supportChain } from '../../support/support-chain.ts';

/** Tests of a service with keys. */
export function keyTests(browser: () => Browser): void {
  let dashboard: Dashboard;
  const afters: (() => unknown)[] = [];
  before(async () => {
    const environment = { SERVICE_API_KEYS: 'ops:write-key-0123456789,viewer:read-key-0123456789' };
    dashboard = await startDashboard({ after: (work) => void afters.unshift(work) }, browser(), { environment });
  });
  after(async () => {
    for (const work of afters) await work();
  });

  test('the page asks for the key and keeps it in the tab; without chains it says what to do [F89]', async (t) => {
    const page = await dashboard.open(t, '/chains');
    await heading(page, 'API key').waitFor();
    assert.equal(await page.getByRole('navigation').count(), 0, 'no link leads to a page that needs the key');
    await assertAccessible(page);
    await button(page, 'Continue').click();
    await page.getByText('Enter a key.').waitFor();
    await page.getByLabel('Key', { exact: true }).fill('wrong');
    await page.keyboard.press('Enter');
    await page.getByText('This key was rejected.').waitFor();
    await page.getByLabel('Key', { exact: true }).fill('write-key-0123456789');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'No chains yet' }).waitFor();
    await assertAccessible(page);
    assert.equal(await page.evaluate('localStorage.length'), 0);
    await page.reload();
    await page.getByRole('heading', { name: 'No chains yet' }).waitFor();
    const other = await page.context().newPage();
    await other.goto(page.url());
    await heading(other, 'API key').waitFor();
    await other.close();

    // If the key is refused while a chain is edited, the edits are kept.
    await page.getByRole('link', { name: 'New chain' }).first().click();
    const check = (url: URL) => url.pathname === '/chains/check';
    await page.route(check, (route) => route.fulfill({ status: 401, json: { detail: 'It was withdrawn.', code: 'UNAUTHORIZED' } }));
    await page.getByLabel('Description').fill('half a thought');
    await heading(page, 'API key').waitFor();
    await page.unroute(check);
    await page.getByLabel('Key', { exact: true }).fill('write-key-0123456789');
    await page.keyboard.press('Enter');
    await heading(page, 'New chain').waitFor();
    assert.equal(await page.getByLabel('Description').inputValue(), 'half a thought');
    await button(page, 'API key').click();
    await page.getByRole('menuitem', { name: 'Forget the key' }).click();
    await heading(page, 'API key').waitFor();
  });

  test('with a read-only key, actions that it does not permit are hidden [F89]', async (t) => {
    const headers = { 'x-api-key': 'write-key-0123456789' };
    const created = await dashboard.service.call('POST', '/chains', { body: supportChain, headers });
    assert.equal(created.status, 201, created.text);
    const page = await dashboard.open(t, `/chains/${created.body.id}`);
    await page.getByLabel('Key', { exact: true }).fill('read-key-0123456789');
    await page.keyboard.press('Enter');
    await page.getByText('Read only').waitFor();
    await heading(page, supportChain.name).waitFor();
    for (const name of ['Edit', 'Test']) assert.equal(await page.getByRole('link', { name, exact: true }).count(), 0, name);
    assert.equal(await button(page, 'More actions').count(), 0);
    await page.getByRole('link', { name: 'Tests', exact: true }).click();
    await page.getByText('Never tested').waitFor();
    assert.equal(await button(page, 'Run').count(), 0);
    await page.getByRole('link', { name: 'Chains', exact: true }).click();
    await page.getByRole('link', { name: supportChain.name }).waitFor();
    assert.equal(await page.getByRole('link', { name: 'New chain' }).count(), 0);
    assert.equal(await button(page, /^Actions for/).count(), 0);
    await page.getByRole('link', { name: 'Import', exact: true }).click();
    await page.getByText('nothing can be imported with it').waitFor();
    await assertAccessible(page);
  });
}
