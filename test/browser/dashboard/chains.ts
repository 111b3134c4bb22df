import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';

import { assertAccessible, assertFits, button, type Dashboard, go, heading } from '../../support/dashboard.ts';

/** The names of the providers in the editor, in order. */
const providerNames = (page: Page) =>
  page
    .locator('section', { hasText: 'Providers, in the order' })
    .getByLabel('Name', { exact: true })
    .evaluateAll((inputs) => (inputs as unknown as { value: string }[]).map(({ value }) => value));

/** Tests of the list and the editor of chains. */
export function chainTests(dashboard: () => Dashboard): void {
  const read = async (id: string) => (await dashboard().service.call('GET', `/chains/${id}`)).body;

  test('are listed with their contents, and can be searched by name, description, provider and model', async (t) => {
    await dashboard().chain({ name: 'listed-one', description: 'for invoices' });
    await dashboard().chain({ name: 'listed-two', providers: [{ name: 'tiny', model_id: 'groq/llama-3.1-8b' }] });
    const page = await dashboard().open(t, '/chains');
    const rows = page.getByRole('row');
    await page.getByRole('link', { name: 'listed-one' }).waitFor();
    assert.match((await rows.filter({ hasText: 'listed-one' }).textContent()) ?? '', /gpt-4o.*claude.*2/);
    const search = page.getByRole('searchbox');
    for (const [words, found] of [
      ['invoices', 'listed-one'],
      ['llama-3.1 TINY', 'listed-two'],
    ] as const) {
      await search.fill(words);
      await page.getByText('1 chain found').waitFor();
      assert.equal(await page.getByRole('rowheader').count(), 1);
      await page.getByRole('link', { name: found }).waitFor();
      assert.ok(page.url().includes('q='));
    }
    await search.fill('no such words');
    await page.getByRole('heading', { level: 2, name: 'No chain matches the search' }).waitFor();
    await button(page, 'Clear the search').click();
    await page.getByRole('link', { name: 'listed-two' }).waitFor();
  });

  test('come behind the table of a rehearsal where there are none yet, and lead where there are some [F169]', async (t) => {
    await dashboard().chain({ name: 'a first chain' });
    const page = await dashboard().open(t, '/chains');
    const example = page.getByText('What a rehearsal of a chain shows');
    await page.getByRole('link', { name: 'a first chain' }).waitFor();
    assert.equal(await example.count(), 0);
    await page.route(
      ({ pathname }) => pathname === '/chains',
      (route) => route.fulfill({ contentType: 'application/json', body: '[]' }),
    );
    await page.reload();
    const panels = page.locator('main section');
    await page.getByRole('heading', { name: 'No chains yet' }).waitFor();
    assert.match((await panels.first().textContent())!, /What a rehearsal of a chain shows.*DIFFERS {2}quota_exceeded/s);
    for (const colorScheme of ['dark', 'light'] as const) {
      await page.emulateMedia({ colorScheme });
      for (const size of [1280, 320]) {
        await page.setViewportSize({ width: size, height: 900 });
        await assertFits(page);
        if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/none-${colorScheme}-${size}.png`, fullPage: true });
      }
    }
  });

  test('are read again only after a change of one', async (t) => {
    await dashboard().chain({ name: 'unchanged' });
    const page = await dashboard().open(t, '/chains', 'with a clock');
    await page.getByRole('link', { name: 'unchanged' }).waitFor();
    const again = () => page.waitForResponse((response) => new URL(response.url()).pathname === '/chains');
    const unchanged = again();
    await page.clock.fastForward(31_000);
    assert.equal((await unchanged).status(), 304);
    await page.getByRole('link', { name: 'unchanged' }).waitFor();
    await dashboard().chain({ name: 'the next one' });
    const changed = again();
    await page.clock.fastForward(31_000);
    assert.equal((await changed).status(), 200);
    await page.getByRole('link', { name: 'the next one' }).waitFor();
  });

  test('removing a provider that a rule leads to says what becomes of the rule [F115]', async (t) => {
    const providers = ['first', 'second', 'third'].map((name) => ({ name, model_id: `openai/${name}` }));
    const fallback_rules = [{ condition: 'timeout', action: 'failover', providers: ['first'], to: ['third'] }];
    const id = await dashboard().chain({ name: 'led', providers, fallback_rules });
    const page = await dashboard().open(t, `/chains/${id}/edit`);
    await button(page, 'Remove provider third').click();
    await page.getByText('Rule 1 led to third alone; it now goes on in the order of the chain.').waitFor();
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/toast.png` });
    await assertAccessible(page);
    await button(page, 'Save').click();
    await heading(page, 'led').waitFor();
    assert.equal((await read(id)).fallback_rules[0].to, null);
  });

  test('a cool-down is edited for the chain and for a provider, with faults beside its fields [F125]', async (t) => {
    const id = await dashboard().chain({ name: 'cooled' });
    const page = await dashboard().open(t, `/chains/${id}/edit`);
    const own = page.getByRole('group', { name: /^Cool-down: how many failures/ });
    await own.getByLabel('Allowed failures').fill('3');
    await own.getByLabel('Counted within').fill('60000');
    await button(page, 'Save').click();
    await own
      .getByText(/^Is required|^Must be|required/)
      .first()
      .waitFor();
    await own.getByLabel('Left out for').fill('30');
    await own.getByLabel('Choose the failures that count').check();
    await own.getByLabel('rate limit').uncheck();
    await button(page, 'More fields of provider gpt-4o').click();
    const ofProvider = page.getByRole('group', { name: /^Its own cool-down/ });
    for (const [label, value] of Object.entries({ 'Allowed failures': '0', 'Counted within': '1000', 'Left out for': '5' }))
      await ofProvider.getByLabel(label).fill(value);
    await assertAccessible(page);
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/cooldown-1280.png`, fullPage: true });
    await page.setViewportSize({ width: 320, height: 900 });
    await assertFits(page);
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/cooldown-320.png`, fullPage: true });
    await button(page, 'Save').click();
    await heading(page, 'cooled').waitFor();
    const { cooldown, providers } = await read(id);
    assert.deepEqual([cooldown.allowed_fails, cooldown.window_ms, cooldown.seconds], [3, 60_000, 30]);
    assert.ok(!cooldown.conditions.includes('rate_limit') && cooldown.conditions.includes('timeout'));
    assert.deepEqual(providers[0].cooldown, { allowed_fails: 0, window_ms: 1000, seconds: 5, conditions: null });
  });

  test('nothing that was entered for one chain is shown for another', async (t) => {
    const page = await dashboard().open(t, '/chains');
    const show = async (name: string, id: string) => {
      await go(page, `/chains/${id}/tests`);
      await heading(page, name).waitFor();
      return page.getByLabel('Seed');
    };
    const [one, two] = [await dashboard().chain({ name: 'entered' }), await dashboard().chain({ name: 'untouched' })];
    // Both are in the cache then, so that the page is not replaced while a chain is read.
    const seed = await (await show('untouched', two)).inputValue();
    await (await show('entered', one)).fill('4711');
    assert.equal(await (await show('untouched', two)).inputValue(), seed);
  });

  test('a save with faults is refused, lists them, and puts the focus on the first', async (t) => {
    const page = await dashboard().open(t, '/chains/new');
    await button(page, 'Save').click();
    await page.getByText('5 fields to correct').waitFor();
    await page.getByText('Provider 2 (Name) must not be empty.').waitFor();
    await page.waitForFunction(`document.activeElement?.getAttribute('aria-invalid') === 'true'`);
    await assertAccessible(page);
  });

  test('a field shows its fault when it is left, not while it is typed, and messages name fields as the page does', async (t) => {
    const page = await dashboard().open(t, '/chains/new');
    const invalid = page.locator('[aria-invalid]');
    const checked = page.waitForResponse((answer) => answer.url().endsWith('/chains/check'));
    await page.getByLabel('Name', { exact: true }).first().fill('n');
    assert.equal((await checked).status(), 400);
    assert.equal(await invalid.count(), 0);
    await page.getByLabel('Model', { exact: true }).first().press('Tab');
    await invalid.waitFor();
    assert.equal(await page.getByLabel('Model', { exact: true }).first().getAttribute('aria-invalid'), 'true');
    await button(page, 'Save').click();
    await page.getByText('Provider 1 (Model) must not be empty.').waitFor();
    assert.ok(!/providers\.\d/.test((await page.textContent('main'))!));
  });

  test('parameters of a kind are edited as JSON, and the address that is called is shown', async (t) => {
    const providers = [
      { name: 'cloud', model_id: 'azure/gpt', params: { api_version: '2024-10-21' } },
      { name: 'own', model_id: 'groq/llama' },
    ];
    const id = await dashboard().chain({ name: 'with parameters', providers });
    const page = await dashboard().open(t, `/chains/${id}/edit`);
    await button(page, /^More fields of provider own/).click();
    assert.equal(await page.getByLabel('Address').getAttribute('placeholder'), 'https://api.groq.com/openai/v1');
    await button(page, /^More fields of provider cloud/).click();
    const params = page.getByLabel('Parameters').first();
    assert.deepEqual(JSON.parse(await params.inputValue()), { api_version: '2024-10-21' });
    await params.fill('{"api_version": ');
    await button(page, 'Save').click();
    await page.getByText(/^Provider 1 \(Parameters\) must be an object/).waitFor();
    await params.fill('{"api_version": "2025-01-01"}');
    await button(page, 'Save').click();
    await page.getByText('with parameters is saved.').waitFor();
    assert.deepEqual((await read(id)).providers[0].params, { api_version: '2025-01-01' });
  });

  test('chains of one name are told apart in the list and in choices', async (t) => {
    const ids = [await dashboard().chain({ name: 'namesake' }), await dashboard().chain({ name: 'namesake' })];
    const page = await dashboard().open(t, '/chains?q=namesake');
    for (const id of ids)
      await page
        .getByRole('rowheader')
        .getByText(`…${id.slice(-6)}`)
        .waitFor();
    await page.goto(`${dashboard().address}/dashboard/templates?chain=${ids[1]}`);
    const chosen = page.getByLabel('Chain', { exact: true }).locator('option:checked');
    assert.equal(await chosen.textContent(), `namesake (…${ids[1]!.slice(-6)})`);
  });

  test('no link of a chain and no column of the list is out of sight in windows of 390 to 1,280 pixels, whatever the names; no field shows a missing value', async (t) => {
    const names = ['claude-sonnet', `gpt-4o-${'n'.repeat(40)}`, `mistral-large-${'n'.repeat(40)}`, 'own-llama'];
    const providers = names.map((name) => ({ name, model_id: `openai/${name}` }));
    const id = await dashboard().chain({
      name: `in sight ${'x'.repeat(80)}`,
      description: 'Quality first, then speed, then our own machines',
      providers,
    });
    const page = await dashboard().open(t, '/chains?q=in sight');
    for (const viewport of [1280, 768]) {
      await page.setViewportSize({ width: viewport, height: 900 });
      await button(page, 'Actions for in sight').waitFor();
      const { x, width } = (await button(page, 'Actions for in sight').boundingBox())!;
      assert.ok(x + width <= viewport, `at ${viewport}: ${x + width} pixels`);
    }
    await page.goto(`${dashboard().address}/dashboard/chains/${id}`);
    for (const viewport of [768, 390]) {
      await page.setViewportSize({ width: viewport, height: 844 });
      const price = page.getByRole('row', { name: /own-llama/ }).getByText('unknown');
      await price.waitFor();
      const cell = (await price.boundingBox())!;
      assert.ok(cell.x + cell.width <= viewport, `at ${viewport}: ${cell.x + cell.width} pixels`);
    }
    await page.goto(`${dashboard().address}/dashboard/chains/${id}/tests`);
    const tabs = page.getByRole('navigation', { name: 'Chain' }).getByRole('link');
    await tabs.first().waitFor();
    await tabs.getByText('Export').click();
    const formats = page.getByRole('navigation', { name: 'Formats' }).getByRole('button');
    await formats.first().waitFor();
    for (const one of [...(await tabs.all()), ...(await formats.all())]) {
      const box = (await one.boundingBox())!;
      assert.ok(box.x + box.width <= 390, (await one.textContent()) ?? '');
    }
    assert.equal(await page.getByPlaceholder('undefined').count(), 0);
  });

  test('in a narrow window Save stays in reach, and lists show warnings and actions without scrolling sideways', async (t) => {
    const id = await dashboard().chain({ name: 'narrow' });
    const page = await dashboard().open(t, `/chains/${id}/edit`);
    await page.setViewportSize({ width: 360, height: 740 });
    await page.getByText('Add a rule').scrollIntoViewIfNeeded();
    const box = (await button(page, 'Save').boundingBox())!;
    assert.ok(box.y > 0 && box.y + box.height <= 740, `Save is at ${box.y}`);
    await page.goto(`${dashboard().address}/dashboard/chains?q=narrow`);
    const actions = button(page, 'Actions for narrow');
    await actions.waitFor();
    for (const one of [actions, page.getByRole('link', { name: 'narrow' })]) {
      const { x, width } = (await one.boundingBox())!;
      assert.ok(x >= 0 && x + width <= 360);
    }
    await assertFits(page);
    await assertAccessible(page);
  });

  test('can be edited: rules are described in plain words, follow a renamed provider, and are saved', async (t) => {
    const id = await dashboard().chain({ name: 'edited' });
    const page = await dashboard().open(t, `/chains/${id}`);
    await page.getByRole('link', { name: 'Edit' }).click();
    await button(page, 'Add a rule').click();
    const rule = page.getByRole('listitem').filter({ hasText: 'When a provider fails' }).last();
    await rule.getByLabel('When it fails with').selectOption('server_error');
    await rule.getByLabel('Action', { exact: true }).selectOption('retry');
    await rule.getByLabel('Extra attempts').fill('2');
    await rule.getByLabel('First wait').fill('200');
    await rule
      .getByRole('group', { name: /^For the providers/ })
      .getByLabel('gpt-4o', { exact: true })
      .check();
    await page
      .getByText('When gpt-4o fails with server error, try the same provider again, 2 more times at most, first after 200 ms')
      .waitFor();
    await page.locator('section', { hasText: 'Providers, in the order' }).getByLabel('Name', { exact: true }).first().fill('gpt');
    await page.getByText('When gpt fails with server error').waitFor();
    await page
      .getByRole('group', { name: /^Fail over to/ })
      .last()
      .getByLabel('claude', { exact: true })
      .click();
    await page.getByText(/then go to claude\./).waitFor();
    await button(page, 'Save').click();
    await page.getByText('edited is saved.').waitFor();
    const kept = await read(id);
    assert.equal(kept.version, 2);
    const { condition, action, max_retries, wait_ms, providers, to } = kept.fallback_rules[2];
    assert.deepEqual(
      { condition, action, max_retries, wait_ms, providers, to },
      { condition: 'server_error', action: 'retry', max_retries: 2, wait_ms: 200, providers: ['gpt'], to: ['claude'] },
    );
  });

  test('providers are ordered by dragging and by buttons', async (t) => {
    const names = ['a', 'b', 'c'];
    const id = await dashboard().chain({ name: 'ordered', providers: names.map((name) => ({ name, model_id: `openai/${name}` })) });
    const page = await dashboard().open(t, `/chains/${id}/edit`);
    const grip = (name: string) => page.getByRole('button', { name: `Move provider ${name}`, exact: true });
    const order = async (wanted: string[]) => {
      const buttons = page.locator('[aria-label^="Move provider"][aria-label$=" up"]');
      for (const [index, name] of wanted.entries())
        await buttons
          .nth(index)
          .and(page.getByLabel(`Move provider ${name} up`))
          .waitFor();
      assert.deepEqual(await providerNames(page), wanted);
    };
    const from = (await grip('a').boundingBox())!;
    const to = (await grip('c').boundingBox())!;
    await page.mouse.move(from.x + 8, from.y + 8);
    await page.mouse.down();
    await page.mouse.move(from.x + 8, from.y + 40, { steps: 4 });
    await page.mouse.move(to.x + 8, to.y + 16, { steps: 8 });
    await page.mouse.up();
    await order(['b', 'c', 'a']);

    await button(page, 'Move provider a up').click();
    await order(['b', 'a', 'c']);
    await button(page, 'Move provider a down').click();
    await order(['b', 'c', 'a']);
    await button(page, 'Move provider b down').click();
    await button(page, 'Save').click();
    await page.getByText('ordered is saved.').waitFor();
    assert.deepEqual(
      (await read(id)).providers.map(({ name }: { name: string }) => name),
      ['c', 'b', 'a'],
    );
  });

  test('can be duplicated from the list; the copy is edited before it is saved', async (t) => {
    await dashboard().chain({ name: 'doubled' });
    const page = await dashboard().open(t, '/chains?q=doubled');
    await button(page, 'Actions for doubled').click();
    await page.getByRole('menuitem', { name: 'Duplicate' }).click();
    await page.getByLabel('Name', { exact: true }).first().waitFor();
    assert.equal(await page.getByLabel('Name', { exact: true }).first().inputValue(), 'doubled copy');
    await button(page, 'Save').click();
    await heading(page, 'doubled copy').waitFor();
  });

  test('can be deleted with undo: an undone deletion sends nothing, any other deletes the chain', async (t) => {
    const id = await dashboard().chain({ name: 'doomed' });
    const page = await dashboard().open(t, '/chains?q=doomed', 'with a clock');
    const remove = async () => {
      await button(page, 'Actions for doomed').press('Enter');
      await page.getByRole('menuitem', { name: 'Delete' }).click();
      await page.getByText('doomed is deleted.').waitFor();
      await page.getByRole('link', { name: 'doomed' }).waitFor({ state: 'detached' });
    };
    await remove();
    await button(page, 'Undo').click();
    await page.getByRole('link', { name: 'doomed' }).waitFor();
    await remove();
    // While the pointer is on the message, it stays and the chain is not deleted.
    await button(page, 'Undo').hover();
    await page.clock.fastForward(60_000);
    assert.ok(await button(page, 'Undo').isVisible());
    assert.equal((await dashboard().service.call('GET', `/chains/${id}`)).status, 200);
    await page.mouse.move(0, 0);
    const gone = page.waitForResponse((answer) => answer.request().method() === 'DELETE');
    await page.clock.fastForward(8000);
    assert.equal((await gone).status(), 204);
    assert.equal((await dashboard().service.call('GET', `/chains/${id}`)).status, 404);
  });

  test('a pending deletion is sent when the page is closed', async (t) => {
    const id = await dashboard().chain({ name: 'closed on' });
    const page = await dashboard().open(t, `/chains/${id}`);
    await button(page, 'More actions').click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    await page.getByText('closed on is deleted.').waitFor();
    await page.goto(`${dashboard().address}/dashboard/templates`);
    await page.waitForFunction(`fetch('/chains/${id}').then(({ status }) => status === 404)`);
  });

  test('leaving with unsaved changes asks for confirmation', async (t) => {
    const id = await dashboard().chain({ name: 'guarded' });
    const page = await dashboard().open(t, `/chains/${id}/edit`);
    await page.getByLabel('Description').fill('half a thought');
    await page.getByRole('link', { name: 'Templates' }).click();
    const dialog = page.getByRole('dialog', { name: 'Leave without saving?' });
    await dialog.waitFor();
    await assertAccessible(page);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    assert.equal(await page.getByLabel('Description').inputValue(), 'half a thought');
    await page.getByRole('link', { name: 'Templates' }).click();
    await button(page, 'Leave').click();
    await heading(page, 'Templates').waitFor();
    assert.equal((await read(id)).description, null);
  });

  test('a concurrent change by another user shows both versions, and either can be kept', async (t) => {
    const id = await dashboard().chain({ name: 'contested' });
    const page = await dashboard().open(t, `/chains/${id}/edit`);
    await page.getByLabel('Description').fill('mine');
    const patch = (description: string) => dashboard().service.call('PATCH', `/chains/${id}`, { body: { description } });
    assert.equal((await patch('theirs')).status, 200);
    await button(page, 'Save').click();
    const dialog = page.getByRole('dialog', { name: 'The chain has changed' });
    await dialog.getByText('The versions differ in: description.').waitFor();
    assert.match((await dialog.getByLabel('Your version').textContent()) ?? '', /mine/);
    assert.match((await dialog.getByLabel('The saved version').textContent()) ?? '', /theirs/);
    await assertAccessible(page);
    await button(page, 'Take the other version').click();
    await dialog.waitFor({ state: 'detached' });
    assert.equal(await page.getByLabel('Description').inputValue(), 'theirs');

    await page.getByLabel('Description').fill('mine again');
    assert.equal((await patch('theirs again')).status, 200);
    await button(page, 'Save').click();
    await button(page, 'Overwrite with mine').click();
    await page.getByText('contested is saved.').waitFor();
    assert.equal((await read(id)).description, 'mine again');
  });
}
