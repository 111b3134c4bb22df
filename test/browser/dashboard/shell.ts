import assert from 'node:assert/strict';
import { before, test } from 'node:test';

import {
  assertAccessible,
  assertPresentable,
  assertSmallPage,
  button,
  type Dashboard,
  go,
  heading,
  maxPageSize,
} from '../../support/dashboard.ts';
import { supportChain } from '../../support/support-chain.ts';

/** Tests of the features that all pages share. */
export function shellTests(dashboard: () => Dashboard): void {
  let pages: Record<string, { path: string; title: string | RegExp; ready: string | RegExp; section?: string | null }>;
  before(async () => {
    const id = await dashboard().chain(supportChain);
    const a = await dashboard().run(id, { prompt_count: 40, seed: 1 });
    const b = await dashboard().run(id, { prompt_count: 40, seed: 1, preset: 'blackout' });
    const name = supportChain.name;
    pages = {
      list: { path: '/chains', title: 'Chains', ready: name },
      new: { path: '/chains/new', title: 'New chain', ready: 'Without rules' },
      overview: { path: `/chains/${id}`, title: name, ready: 'Last test' },
      edit: { path: `/chains/${id}/edit`, title: `Edit ${name}`, ready: 'Among equals, the first one decides.' },
      whatIf: { path: `/chains/${id}/what-if?provider=gpt-4o&condition=rate_limit`, title: name, ready: 'mistral-large answers' },
      tests: { path: `/chains/${id}/tests`, title: name, ready: 'blackout' },
      rehearse: { path: `/chains/${id}/rehearse`, title: name, ready: 'model_list' },
      export: { path: `/chains/${id}/export`, title: name, ready: 'model_list' },
      result: { path: `/results/${a}`, title: /^Test of/, ready: 'Who served' },
      compare: { path: `/compare?a=${a}&b=${b}`, title: 'Compare two tests', ready: 'Latency p95' },
      import: { path: '/import', title: 'Import a chain', ready: 'Choose a file', section: 'Import' },
      templates: { path: '/templates', title: 'Templates', ready: `# ${name}`, section: 'Templates' },
      nowhere: { path: '/nowhere', title: 'Page not found', ready: 'mistyped', section: null },
    };
  });
  test('axe finds no violation on any page, light or dark, no page is wider than a window of 320 or 2,560 pixels, and each marks its link', async (t) => {
    const page = await dashboard().open(t, '/nowhere');
    for (const [name, { path, title, ready, section = 'Chains' }] of Object.entries(pages)) {
      await t.test(name, async () => {
        await go(page, path);
        await heading(page, title).waitFor();
        await page.getByText(ready).last().waitFor();
        const marked = page.getByRole('navigation', { name: 'Main' }).locator('[aria-current=page]');
        assert.deepEqual(await marked.allTextContents(), section === null ? [] : [section]);
        await assertPresentable(page);
      });
    }
  });

  test('the colour scheme is chosen by keyboard and remembered in the browser', async (t) => {
    const page = await dashboard().open(t, '/chains');
    const canvas = () => page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor');
    const light = await canvas();
    await button(page, 'Colour scheme').press('Enter');
    await page.getByRole('menuitem', { name: 'Dark' }).press('Enter');
    await page.waitForFunction(`document.documentElement.dataset.scheme === 'dark'`);
    const dark = await canvas();
    assert.notEqual(dark, light);
    await page.reload();
    assert.equal(await canvas(), dark);
    await button(page, 'Colour scheme').press('Enter');
    await page.getByRole('menuitem', { name: 'As the system' }).press('Enter');
    await page.waitForFunction(`document.documentElement.dataset.scheme === undefined`);
    assert.equal(await canvas(), light);
  });

  test('the first Tab leads to a link past the navigation, and a new page is read from its heading', async (t) => {
    const page = await dashboard().open(t, '/chains');
    await heading(page, 'Chains').waitFor();
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'Skip to content');
    await page.getByRole('link', { name: 'Templates' }).press('Enter');
    await heading(page, 'Templates').waitFor();
    await page.waitForFunction(`document.activeElement?.tagName === 'H1'`);
    assert.equal(await page.title(), 'Templates · Fallback chains · Baton');
  });

  test('a message reports a lost connection, loaded data stays, and the message disappears when the service answers again', async (t) => {
    const page = await dashboard().open(t, '/import', 'with a clock');
    await page.getByRole('link', { name: 'Chains', exact: true }).click();
    await page.getByRole('link', { name: supportChain.name }).waitFor();
    const calls = (url: URL) => url.pathname === '/chains';
    await page.route(calls, (route) => route.abort('failed'));
    await page.clock.fastForward(31_000);
    await page.getByText("The service can't be reached.").waitFor();
    await page.getByRole('link', { name: supportChain.name }).waitFor();
    await assertAccessible(page);
    await page.unroute(calls);
    await page.clock.fastForward(10_000);
    await page.getByText("The service can't be reached.").waitFor({ state: 'detached' });
  });

  test('a failed load is reported with a button to try again', async (t) => {
    const page = await dashboard().open(t, '/import');
    let broken = true;
    await page.route(
      (url) => url.pathname === '/chains',
      (route) => (broken ? route.fulfill({ status: 409, json: { detail: 'It is broken.', code: 'CONFLICT' } }) : route.fallback()),
    );
    await page.getByRole('link', { name: 'Chains', exact: true }).click();
    await page.getByText('It is broken.').waitFor();
    await assertAccessible(page);
    broken = false;
    await button(page, 'Try again').click();
    await page.getByRole('link', { name: supportChain.name }).waitFor();
  });

  test("a page whose script can't be loaded is reported below the navigation, which still works", async (t) => {
    const page = await dashboard().open(t, '/chains');
    await page.route('**/assets/*.js', (route) => route.abort());
    await page.getByRole('link', { name: 'Templates', exact: true }).click();
    await page.getByRole('alert').getByRole('heading', { name: 'This page could not be loaded' }).waitFor();
    await assertAccessible(page);
    await page.getByRole('link', { name: 'Chains', exact: true }).click();
    await page.getByRole('link', { name: supportChain.name }).waitFor();
  });

  test('placeholder lines are shown while chains load, and a missing chain is reported', async (t) => {
    const page = await dashboard().open(t, '/import');
    let letGo: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    await page.route(
      (url) => url.pathname === '/chains',
      async (route) => {
        await held;
        await route.fallback();
      },
    );
    await page.getByRole('link', { name: 'Chains', exact: true }).click();
    await page.getByText('Loading').waitFor({ state: 'attached' });
    await assertAccessible(page);
    letGo();
    await page.getByRole('link', { name: supportChain.name }).waitFor();
    await page.goto(`${dashboard().address}/dashboard/chains/019cb8d3-f1a2-7c05-9a2b-3c4d5e6f7a8b`);
    await heading(page, 'Chain not found').waitFor();
    await assertAccessible(page);
  });

  test(`the first page needs at most ${maxPageSize} KB`, async (t) => {
    const page = await dashboard().open(t, '/chains');
    await page.getByRole('link', { name: supportChain.name }).waitFor();
    await assertSmallPage(t, page);
  });
}
