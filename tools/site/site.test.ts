import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import type { Browser } from 'playwright-core';

import { launchBrowser } from '../../test/support/browser.ts';

const dist = fileURLToPath(new URL('dist', import.meta.url));
const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.json': 'application/json',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
};

describe('The built site', () => {
  let origin: string;
  let browser: Browser;
  const server = createServer(({ url = '/' }, response) => {
    const path = new URL(url, 'http://localhost').pathname;
    try {
      const bytes = readFileSync(join(dist, path.endsWith('/') ? `${path}index.html` : path));
      response.writeHead(200, { 'content-type': types[extname(path)] ?? types['.html']! }).end(bytes);
    } catch {
      response.writeHead(404).end();
    }
  });
  before(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    browser = await launchBrowser();
  });
  after(async () => {
    await browser.close();
    server.close();
  });

  test('shows every page without an error and without a request to another host', async () => {
    const pages = globSync('**/*.html', { cwd: dist }).filter((page) => page !== '404.html');
    assert.ok(pages.length > 30);
    const faults: string[] = [];
    const page = await browser.newPage();
    page.on('request', (request) => {
      if (!request.url().startsWith(origin) && !request.url().startsWith('data:')) faults.push(`a request to ${request.url()}`);
    });
    page.on('response', (response) => {
      if (response.status() >= 400) faults.push(`${response.status()} for ${response.url()}`);
    });
    page.on('pageerror', ({ message }) => faults.push(message));
    for (const path of pages) {
      await page.goto(`${origin}/${path}`);
      assert.ok((await page.locator('main h1').count()) > 0, path);
    }
    assert.deepEqual(faults, []);
    await page.close();
  });

  test('its search finds a section of a document and an operation of an API', async () => {
    const page = await browser.newPage();
    await page.goto(origin);
    // The shortcut works once the page's application is mounted.
    await page.waitForFunction(() => '__vue_app__' in document.querySelector('#app')!);
    for (const [words, path] of [
      ['exclude_source answer', '/guide.html'],
      ['claimNext', '/api/handoff/packets.html'],
    ]) {
      await page.keyboard.press('ControlOrMeta+k');
      await page.locator('#localsearch-input').fill(words!);
      await page.locator(`#localsearch-list a[href*="${path}"]`).first().waitFor();
      await page.keyboard.press('Escape');
    }
    await page.close();
  });

  for (const colorScheme of ['light', 'dark'] as const) {
    test(`its pictures and colours are those of the ${colorScheme} scheme, and no page is wider than a telephone`, async () => {
      const page = await browser.newPage({ colorScheme, viewport: { width: 360, height: 740 } });
      await page.goto(origin);
      const shown = await page
        .locator('.vp-doc img:visible')
        .evaluateAll((images) => images.map((image) => (image as HTMLImageElement).src));
      assert.ok(shown.length > 0 && shown.every((source) => source.includes(`-${colorScheme}`)), shown.join());
      for (const path of ['index', 'guide', 'production', 'settings', 'api/handoff/packets']) {
        await page.goto(`${origin}/${path}.html`);
        const [width, room] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
        assert.ok(width! <= room!, `${path} is ${width} wide`);
      }
      await page.close();
    });
  }
});
