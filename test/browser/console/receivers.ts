import assert from 'node:assert/strict';
import { test } from 'node:test';

import { defaultWebhookEvents } from '../../../src/handoff/model/constants.ts';
import type { TestConsole } from '../../support/console.ts';
import { assertAccessible, button, go } from '../../support/dashboard.ts';

/** Tests of webhooks and channels. */
export function receiverTests(on: TestConsole): void {
  test('webhooks are registered, tested, changed and removed; a dead letter names its webhook and is replayed; the tab of the page is marked', async (t) => {
    const { page, key } = await on.signIn(t, '/webhooks');
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
      await on.service.handoff.runOnce.deliver();
      on.service.clock.turn(25_000);
    }
    await button(page, 'Pause').click();
    await page.getByText('paused', { exact: true }).waitFor();
    const [hook] = await on.call(key, 'GET', '/hooks');
    assert.equal(hook.active, false);
    assert.deepEqual(
      hook.events,
      defaultWebhookEvents.filter((event) => event !== 'packet.expired'),
      'as for a request without events, but for the one that was unchecked',
    );
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
    await page.getByText('Queued again.').waitFor();
    await page.getByText('No dead letters').waitFor();
    await go(page, `/webhooks/${hook.id}`);
    await button(page, 'Remove').click();
    await dialog.getByRole('button', { name: 'Remove' }).first().click();
    await page.getByText('No webhooks yet').waitFor();
  });

  test('a channel is created, tested, paused and removed; until there is one, the inbox says that nobody is notified', async (t) => {
    const { page, key } = await on.signIn(t, '/inbox');
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
    const [channel] = await on.call(key, 'GET', '/channels');
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
}
