import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Locator, Page } from 'playwright-core';

import { button, type Dashboard, go, heading } from '../../support/dashboard.ts';
import { supportChain } from '../../support/support-chain.ts';
import { until } from '../../support/until.ts';

const link = (page: Page, name: string) => page.getByRole('link', { name, exact: true });

/** Presses Tab until the focus is on the target, as often as a person would. */
async function tabTo(target: Locator, key: 'Tab' | 'Shift+Tab' = 'Tab'): Promise<void> {
  await target.waitFor();
  for (let presses = 0; presses < 40; presses += 1) {
    await target.page().keyboard.press(key);
    if ((await target.and(target.page().locator(':focus')).count()) === 1) return;
  }
  assert.fail(`${target} is not reached by ${key}.`);
}

/** Moves the focus to the target by Tab and presses Enter. */
async function choose(target: Locator): Promise<void> {
  await tabTo(target);
  await target.page().keyboard.press('Enter');
}

/** The text of the focused control if something else is in front of its middle; otherwise empty. */
const coveredFocus = `(() => {
  const control = document.activeElement;
  const { x, y, width, height } = control.getBoundingClientRect();
  const front = document.elementFromPoint(x + width / 2, y + height / 2);
  return control.matches('button, input, select, textarea') && !control.contains(front) ? control.outerHTML : '';
})()`;

/** Tests of the dashboard without a pointer. */
export function keyboardTests(dashboard: () => Dashboard): void {
  const read = async (path: string) => (await dashboard().service.call('GET', path)).body;

  test('chains can be created, ordered, queried, tested, compared and exported; faults appear when a field is left, and warnings while typing [F20]', async (t) => {
    const page = await dashboard().open(t, '/chains');
    const { keyboard } = page;
    const type = async (target: Locator, text: string) => {
      await tabTo(target);
      await keyboard.type(text);
    };
    await choose(link(page, 'New chain').first());
    await heading(page, 'New chain').waitFor();
    const providers = page.locator('section', { hasText: 'Providers, in the order' });
    const name = (nth: number) => providers.getByLabel('Name', { exact: true }).nth(nth);
    const timeout = providers.getByLabel('Timeout').last();
    await type(page.getByLabel('Name', { exact: true }).first(), 'typed chain');
    await type(page.getByLabel('Description'), 'made without a mouse');
    for (const nth of [0, 1]) {
      await type(name(nth), ['first', 'second'][nth]!);
      await type(providers.getByLabel('Model').nth(nth), 'openai/gpt-4o');
    }
    await type(timeout, 'soon');
    await keyboard.press('Tab');
    await page.getByText('Must be an integer, not a string.').waitFor();
    await tabTo(timeout, 'Shift+Tab');
    await keyboard.press('Control+A');
    await keyboard.type('9000');
    await page.getByText(/Worst case: 2 attempts and 39 s for one prompt/).waitFor();
    await page.locator('[role=status]', { hasText: 'Worst case' }).getByRole('listitem').first().waitFor();
    assert.equal(await page.locator('[aria-invalid]').count(), 0);

    await tabTo(button(page, 'Move provider second').first(), 'Shift+Tab');
    await keyboard.press('Space');
    await page.getByText('provider second is lifted. It is at position 2 of 2.').waitFor();
    // A lifted provider takes keys a moment after it is said to be lifted.
    await until(async () => {
      await keyboard.press('ArrowUp');
      return page.getByText('provider second is over position 1.').isVisible();
    });
    await keyboard.press('Space');
    await page.getByText('provider second is dropped at position 1.').waitFor();
    await tabTo(button(page, 'Save'), 'Shift+Tab');
    await keyboard.press('Enter');
    await heading(page, 'typed chain').waitFor();
    const chain = await read(`/chains/${page.url().split('/').at(-1)}`);
    assert.equal(chain.description, 'made without a mouse');
    assert.deepEqual(
      chain.providers.map((provider: { name: string; timeout_ms: number }) => [provider.name, provider.timeout_ms]),
      [
        ['second', 9000],
        ['first', 30_000],
      ],
    );

    await choose(link(page, 'What happens if'));
    await choose(button(page, /second fails with rate limit/));
    await page.getByText('first answers').waitFor();

    for (const [index, seed] of ['1', '2'].entries()) {
      await tabTo(link(page, 'Tests'), index === 0 ? 'Shift+Tab' : 'Tab');
      await keyboard.press('Enter');
      await type(page.getByLabel('Seed'), seed);
      await keyboard.press('Enter');
      await heading(page, /Test of typed chain/).waitFor();
      await choose(link(page, 'Chain’s tests'));
    }
    const boxes = page.getByRole('checkbox', { name: /^Compare the test/ });
    for (const nth of [0, 1]) {
      await tabTo(boxes.nth(nth));
      await keyboard.press('Space');
    }
    await tabTo(button(page, 'Compare two'), 'Shift+Tab');
    await keyboard.press('Enter');
    await page.getByRole('table', { name: 'Figures of both tests' }).waitFor();

    await page.goBack();
    await choose(link(page, 'Export'));
    await choose(button(page, 'JSON'));
    await page.getByRole('region', { name: /json$/ }).waitFor();
    await choose(button(page, 'Copy'));
    await page.getByText('Copied').waitFor({ state: 'attached' });
    const copied = JSON.parse(await page.evaluate<string>('navigator.clipboard.readText()'));
    assert.equal(copied.name, 'typed chain');
  });

  test('the focus moves to an added item, stays next to a removed one, and is never lost', async (t) => {
    const page = await dashboard().open(t, '/chains/new');
    const { keyboard } = page;
    const focused = page.locator(':focus');
    const group = (name: string) => page.getByRole('group', { name, exact: true });
    const requireFocus = (target: Locator) => target.and(focused).waitFor();

    await choose(button(page, 'Add a provider'));
    await requireFocus(group('provider 3').getByLabel('Name', { exact: true }));
    await keyboard.type('third');
    await choose(button(page, 'More fields of provider third'));
    await requireFocus(button(page, 'Fewer fields of provider third'));
    await choose(button(page, 'Remove provider third'));
    await requireFocus(button(page, 'Move provider 2').first());
    // A button that becomes disabled when it is pressed keeps the focus.
    await choose(button(page, 'Move provider 2 up'));
    await requireFocus(button(page, 'Move provider 1 up'));

    await choose(button(page, 'Add a rule'));
    await requireFocus(group('rule 1').getByLabel('When it fails with'));
    await choose(button(page, 'Remove rule 1'));
    await requireFocus(page.locator('[tabindex="-1"]', { hasText: 'Without rules, every failure' }).last());
  });

  test('what has the focus is not below a bar that stays in sight', async (t) => {
    const id = await dashboard().chain(supportChain);
    const page = await dashboard().open(t, `/chains/${id}/edit`);
    for (const [width, key] of [
      [390, 'Tab'],
      [1280, 'Shift+Tab'],
    ] as const) {
      await page.setViewportSize({ width, height: 844 });
      await heading(page, /^Edit/).waitFor();
      for (let presses = 1; presses <= 30; presses += 1) {
        await page.keyboard.press(key);
        assert.equal(await page.evaluate(coveredFocus), '', `after ${presses} times ${key} at ${width} pixels`);
      }
    }
  });

  test('a page that is still loading has the focus until its heading appears', async (t) => {
    const id = await dashboard().run(await dashboard().chain({ name: 'late' }), { preset: 'healthy' });
    const page = await dashboard().open(t, '/chains');
    await heading(page, 'Chains').waitFor();
    const shown = Promise.withResolvers<void>();
    await page.route(/test-results/, async (route) => {
      await shown.promise;
      await route.continue();
    });
    await go(page, `/results/${id}`);
    await page.locator('main:focus').waitFor();
    shown.resolve();
    await heading(page, /Test of late/)
      .and(page.locator(':focus'))
      .waitFor();
  });
}
