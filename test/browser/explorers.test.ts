import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';

import { apiPrefix, routes } from '../../src/handoff/model/api.ts';
import type { Route } from '../../src/kit/route.ts';
import { launchBrowser, withoutBrowser } from '../support/browser.ts';
import { adminKey, startService } from '../support/service.ts';

const summaries = Object.values<Route>(routes).map(({ summary }) => summary);

/** The explorers, each with the selector of an operation's summary. */
const explorers = [
  { path: '/docs', name: 'Swagger UI', operation: '.opblock-summary-description' },
  { path: '/redoc', name: 'Redoc', operation: '[data-section-id^="tag/"] h2' },
] as const;

/** A page of the service in light colours, and its unwanted effects. */
interface Visit {
  readonly page: Page;
  /** Requests to other hosts. */
  readonly foreignRequests: string[];
  /** Errors and warnings of the console, and uncaught errors. */
  readonly consoleErrors: string[];
}

describe('in a browser', { skip: withoutBrowser }, () => {
  let browser: Browser;
  let address: string;
  const ends: (() => unknown)[] = [];
  before(async () => {
    const service = await startService({ after: (end) => void ends.push(end as () => unknown) });
    address = await service.handoff.start();
    browser = await launchBrowser();
  });
  after(async () => {
    await browser.close();
    for (const end of ends) await end();
  });

  const visits = new Map<string, Promise<Visit>>();

  /** The page at this path. Tests share it, since loading it takes longer than most tests. */
  async function visit(path: string): Promise<Visit> {
    if (!visits.has(path)) visits.set(path, load(path));
    const visited = await visits.get(path)!;
    await visited.page.setViewportSize({ width: 1280, height: 900 });
    return visited;
  }

  async function load(path: string): Promise<Visit> {
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, colorScheme: 'light', reducedMotion: 'reduce' });
    const foreignRequests: string[] = [];
    const consoleErrors: string[] = [];
    page.on('request', (request) => {
      const url = request.url();
      if (!url.startsWith(`${address}/`) && !url.startsWith(`blob:${address}/`) && !url.startsWith('data:')) foreignRequests.push(url);
    });
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) consoleErrors.push(message.text());
    });
    page.on('pageerror', (error) => consoleErrors.push(error.message));
    const answer = await page.goto(address + path);
    assert.equal(answer?.status(), 200);
    return { page, foreignRequests, consoleErrors };
  }

  for (const { path, name, operation } of explorers) {
    test(`${path} (${name}) shows every operation, fits wide and narrow windows, sends no request to another host, and logs no error`, async () => {
      const { page, foreignRequests, consoleErrors } = await visit(path);
      await page
        .locator(operation)
        .nth(summaries.length - 1)
        .waitFor({ state: 'attached' });
      const shown = (await page.locator(operation).allTextContents()).map((text) => text.trim());
      for (const summary of summaries) assert.ok(shown.includes(summary), summary);
      for (const width of [1280, 390]) {
        await page.setViewportSize({ width, height: 900 });
        // Waits for images and workers.
        await page.waitForLoadState('networkidle');
        assert.equal(await page.evaluate<number>('document.documentElement.scrollWidth - window.innerWidth'), 0, `${width}`);
      }
      assert.deepEqual(foreignRequests, []);
      assert.deepEqual(consoleErrors, []);
    });
  }

  test(`below ${apiPrefix} the explorers are the same pages with the same description`, async () => {
    const texts = (path: string) => Promise.all(['', apiPrefix].map(async (prefix) => (await fetch(address + prefix + path)).text()));
    for (const { path } of explorers) {
      const [plain, prefixed] = await texts(path);
      assert.equal(prefixed!.replaceAll(`"${apiPrefix}/`, '"/'), plain);
      for (const [, asset] of prefixed!.matchAll(/(?:src|href)="(\/[^"]+)"/g))
        assert.equal((await fetch(address + asset)).status, 200, asset!);
    }
    const [plain, prefixed] = await texts('/openapi.json');
    assert.equal(prefixed, plain);
  });

  test('/docs sends a request with an entered key and shows the answer of the service', async () => {
    const { page, foreignRequests, consoleErrors } = await visit('/docs');
    const health = page.locator('.opblock', { hasText: '/health' });
    await health.locator('.opblock-summary').click();
    await health.locator('button.execute').click();
    await health.locator('.live-responses-table .response-col_status').getByText('200').waitFor();
    assert.match((await health.locator('.live-responses-table').textContent()) ?? '', /"status": "ok"/);
    // The entered key is sent, so the packets of its tenant are shown.
    await page.locator('button.authorize').first().click();
    await page.locator('#api_key_value').fill(adminKey);
    await page.locator('.auth-btn-wrapper button.authorize').first().click();
    await page.locator('.auth-btn-wrapper button.btn-done').first().click();
    const list = page.locator('#operations-packets-listPackets');
    await list.locator('.opblock-summary').click();
    await list.locator('button.execute').click();
    await list.locator('.live-responses-table .response-col_status').getByText('200').waitFor();
    assert.match((await list.locator('.live-responses-table').textContent()) ?? '', /"total": 0/);
    assert.deepEqual(foreignRequests, []);
    assert.deepEqual(consoleErrors, []);
  });

  test('the search of /redoc finds operations', async () => {
    const { page, foreignRequests, consoleErrors } = await visit('/redoc');
    await page.locator('input[type=text]').first().fill('claim');
    await page.locator('[data-role="search:results"]').getByText('Claim a packet').first().waitFor();
    assert.deepEqual(foreignRequests, []);
    assert.deepEqual(consoleErrors, []);
  });
});
