import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';

import { apiPrefix, routes } from '../../src/handoff/model/api.ts';
import type { Route } from '../../src/kit/route.ts';
import { launchBrowser, withoutBrowser } from '../support/browser.ts';
import { adminKey, startService } from '../support/service.ts';

const summaries = Object.values<Route>(routes).map(({ summary }) => summary);

/** The explorers, and where each shows an operation's summary. */
const explorers = [
  { path: '/docs', name: 'Swagger UI', operation: '.opblock-summary-description' },
  { path: '/redoc', name: 'Redoc', operation: '[data-section-id^="tag/"] h2' },
] as const;

const widths = { wide: 1280, narrow: 390 } as const;

/** A page of the service in light colours, and everything it did that it should not have. */
interface Visit {
  readonly page: Page;
  /** Requests to anywhere but the service. */
  readonly strayed: string[];
  /** Errors and warnings of the console, and errors that nobody caught. */
  readonly complaints: string[];
}

describe('in a browser', { skip: withoutBrowser }, () => {
  let browser: Browser;
  before(async () => {
    browser = await launchBrowser();
  });
  after(() => browser.close());

  async function visit(t: TestContext, path: string, width: number): Promise<Visit> {
    const service = await startService(t);
    const address = await service.handoff.start();
    const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: 'light' });
    const strayed: string[] = [];
    const complaints: string[] = [];
    page.on('request', (request) => {
      const url = request.url();
      if (!url.startsWith(`${address}/`) && !url.startsWith(`blob:${address}/`) && !url.startsWith('data:')) strayed.push(url);
    });
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
    });
    page.on('pageerror', (error) => complaints.push(error.message));
    t.after(() => page.close());
    const answer = await page.goto(address + path);
    assert.equal(answer?.status(), 200);
    return { page, strayed, complaints };
  }

  for (const { path, name, operation } of explorers) {
    for (const [form, width] of Object.entries(widths)) {
      test(`${path} (${name}, ${form}) shows every operation, fits its window, asks no other host, complains of nothing`, async (t) => {
        const { page, strayed, complaints } = await visit(t, path, width);
        await page
          .locator(operation)
          .nth(summaries.length - 1)
          .waitFor({ state: 'attached' });
        const shown = (await page.locator(operation).allTextContents()).map((text) => text.trim());
        for (const summary of summaries) assert.ok(shown.includes(summary), summary);
        // Pictures and workers that come last have come.
        await page.waitForLoadState('networkidle');
        const overhang = await page.evaluate<number>('document.documentElement.scrollWidth - window.innerWidth');
        assert.equal(overhang, 0);
        assert.deepEqual(strayed, []);
        assert.deepEqual(complaints, []);
      });
    }

    test(`${apiPrefix}${path} is the same page`, async (t) => {
      const { page, strayed, complaints } = await visit(t, apiPrefix + path, widths.wide);
      await page
        .locator(operation)
        .nth(summaries.length - 1)
        .waitFor({ state: 'attached' });
      assert.deepEqual(strayed, []);
      assert.deepEqual(complaints, []);
    });
  }

  test('an operation can be tried from /docs: the answer of the service is shown', async (t) => {
    const { page, strayed, complaints } = await visit(t, '/docs', widths.wide);
    const health = page.locator('.opblock', { hasText: '/health' });
    await health.locator('.opblock-summary').click();
    await health.locator('button.execute').click();
    await health.locator('.live-responses-table .response-col_status').getByText('200').waitFor();
    assert.match((await health.locator('.live-responses-table').textContent()) ?? '', /"status": "ok"/);
    assert.deepEqual(strayed, []);
    assert.deepEqual(complaints, []);
  });

  test('a key that is entered in /docs is sent: a tenant sees its packets', async (t) => {
    const { page } = await visit(t, '/docs', widths.wide);
    await page.locator('button.authorize').first().click();
    await page.locator('.auth-container input').fill(adminKey);
    await page.locator('.auth-btn-wrapper button.authorize').click();
    await page.locator('.auth-btn-wrapper button.btn-done').click();
    const list = page.locator('#operations-packets-listPackets');
    await list.locator('.opblock-summary').click();
    await list.locator('button.execute').click();
    await list.locator('.live-responses-table .response-col_status').getByText('200').waitFor();
    assert.match((await list.locator('.live-responses-table').textContent()) ?? '', /"total": 0/);
  });

  test('what is looked for in /redoc is found', async (t) => {
    const { page, strayed, complaints } = await visit(t, '/redoc', widths.wide);
    await page.locator('input[type=text]').first().fill('claim');
    await page.locator('[data-role="search:results"]').getByText('Claim a packet').first().waitFor();
    assert.deepEqual(strayed, []);
    assert.deepEqual(complaints, []);
  });
});
