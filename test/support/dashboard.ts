import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import type { Browser, ConsoleMessage, Locator, Page, Request } from 'playwright-core';

import { chainRequest, type FallbackOptions, startFallback, type TestFallback } from './fallback.ts';
import { listenFor } from './listen.ts';
import { until } from './until.ts';

const axeSource = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

/** A test or a suite that runs work at its end. */
interface Scope {
  after(work: () => unknown): void;
}

/** The pages of a listening service in a browser. */
export interface Pages {
  /** `http://127.0.0.1:PORT`. */
  readonly address: string;
  readonly browser: Browser;
  /**
   * Loads a page in a tab that tests share, since opening a tab costs more than most tests, or in one
   * with a fake clock. The test fails if the page sends a request to another host, breaks its content security policy, or
   * logs an error or a warning to the console.
   */
  open(t: Scope, path: string, tab?: 'usual' | 'with a clock'): Promise<Page>;
}

/** A button of a page. */
export const button = (page: Page, name: string | RegExp): Locator => page.getByRole('button', { name });

/** The heading of a page. */
export const heading = (page: Page, name: string | RegExp): Locator => page.getByRole('heading', { level: 1, name });

/** A listening fallback service, and a browser for its dashboard. */
export interface Dashboard extends Pages {
  readonly service: TestFallback;
  /** Creates a chain and returns its id. */
  chain(changes?: Record<string, unknown>): Promise<string>;
  /** Runs a test of a chain and returns the id of its result. */
  run(chainId: string, body?: Record<string, unknown>): Promise<string>;
}

/** Starts a service that ends with the suite, for use with the browser. */
export async function startDashboard(t: Scope, browser: Browser, options: FallbackOptions = {}): Promise<Dashboard> {
  const service = await startFallback(t as Parameters<typeof startFallback>[0], options);
  const address = await service.fallback.start();
  return {
    ...pagesOf(t, browser, `${address}/dashboard`),
    service,
    async chain(changes) {
      const answer = await service.call('POST', '/chains', { body: chainRequest(changes) });
      assert.equal(answer.status, 201, answer.text);
      return answer.body.id;
    },
    async run(chainId, body = {}) {
      const answer = await service.call('POST', `/chains/${chainId}/test`, { body });
      assert.equal(answer.status, 201, answer.text);
      return answer.body.id;
    },
  };
}

/** The pages below an address, in tabs that end with the suite. */
export function pagesOf(t: Scope, browser: Browser, base: string): Pages {
  const tabs = new Map<string, Promise<Page>>();
  const address = new URL(base).origin;
  t.after(async () => {
    for (const tab of tabs.values()) await (await tab).context().close();
  });
  return {
    address,
    browser,
    async open(scope, path, tab = 'usual') {
      if (!tabs.has(tab)) tabs.set(tab, openTab(browser, tab === 'with a clock'));
      const page = await tabs.get(tab)!;
      watch(scope, page, address);
      await page.setViewportSize(viewport);
      const answer = await page.goto(`${base}${path}`);
      assert.equal(answer?.status(), 200);
      return page;
    },
  };
}

/** The size of the window when a page is opened. */
const viewport = { width: 1280, height: 900 };

async function openTab(browser: Browser, withClock: boolean): Promise<Page> {
  const context = await browser.newContext({
    viewport,
    colorScheme: 'light',
    reducedMotion: 'reduce',
    locale: 'en-GB',
    permissions: ['clipboard-read', 'clipboard-write'],
  });
  const page = await context.newPage();
  if (withClock) await page.clock.install();
  return page;
}

/** The browser's own console message about a failed request. The page shows such failures, which the tests check. */
const refusalNote = /^Failed to load resource: (the server responded with a status of 4|net::ERR_)/;

/** Fails the test at its end if the page sent a request to another host or logged an error. */
function watch(scope: Scope, page: Page, address: string): void {
  const foreignRequests: string[] = [];
  const consoleErrors: string[] = [];
  const onRequest = (request: Request) => {
    const url = request.url();
    if (!url.startsWith(`${address}/`) && !url.startsWith(`blob:${address}/`)) foreignRequests.push(url);
  };
  const onConsole = (message: ConsoleMessage) => {
    if (['error', 'warning'].includes(message.type()) && !refusalNote.test(message.text())) consoleErrors.push(message.text());
  };
  const onError = (error: Error) => consoleErrors.push(error.message);
  page.on('request', onRequest).on('console', onConsole).on('pageerror', onError);
  scope.after(async () => {
    page.off('request', onRequest).off('console', onConsole).off('pageerror', onError);
    await page.unrouteAll();
    assert.deepEqual(foreignRequests, []);
    assert.deepEqual(consoleErrors, []);
  });
}

/** Navigates within an application, without loading the document again. */
export const go = (page: Page, path: string): Promise<void> =>
  page.evaluate(
    `history.pushState({ ...history.state, idx: (history.state?.idx ?? 0) + 1 }, '', '/' + location.pathname.split('/')[1] + ${JSON.stringify(path)}), dispatchEvent(new PopStateEvent('popstate', { state: history.state }))`,
  );

/** Resolves when the focus is inside of an element: a dialog gets it after it is shown, and keys that are pressed before go elsewhere. */
export const focused = (element: Locator): Promise<void> => element.locator(':focus').waitFor();

/** Fails if axe finds a violation in the page; with `colours`, only rules that depend on the colour scheme are checked. */
export async function assertAccessible(page: Page, { colours = false } = {}): Promise<void> {
  if (await page.evaluate(`typeof axe === 'undefined'`)) await page.evaluate(axeSource);
  const options = colours ? `runOnly: { type: 'rule', values: ['color-contrast', 'link-in-text-block'] }` : '';
  const faults = await page.evaluate<string[]>(
    `axe.run({ resultTypes: ['violations'], ${options} }).then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html, failureSummary }) => html + ' ' + failureSummary).join('; ')))`,
  );
  assert.deepEqual(faults, []);
}

/** Fails if the page is wider than its window. */
export async function assertFits(page: Page): Promise<void> {
  // Layout adapts to a new width a few frames later.
  await page.waitForFunction('document.documentElement.scrollWidth <= document.documentElement.clientWidth');
}

/** Fails if axe finds a violation in the page, light or dark, or if the page is wider than a window of any size. */
export async function assertPresentable(page: Page): Promise<void> {
  await assertAccessible(page);
  // Only rules about colours can differ in the other scheme.
  await page.emulateMedia({ colorScheme: 'dark' });
  await assertAccessible(page, { colours: true });
  await page.emulateMedia({ colorScheme: 'light' });
  for (const width of [320, 2560, 1280]) {
    await page.setViewportSize({ width, height: 900 });
    await assertFits(page);
  }
}

/** The size limit of a first page, in KB: its compressed scripts and styles, and its font. */
export const maxPageSize = 200;

/** Fails if what a page has loaded exceeds the limit. */
export async function assertSmallPage(t: TestContext, page: Page): Promise<void> {
  const names: string[] = await page.evaluate("performance.getEntriesByType('resource').map(({ name }) => name)");
  const sizeOf = async (name: string) => {
    const bytes = await (await fetch(name)).bytes();
    return name.endsWith('.woff2') ? bytes.length : gzipSync(bytes).length;
  };
  const sizes = await Promise.all(names.filter((name) => /\.(js|css|woff2)$/.test(name)).map(sizeOf));
  const size = sizes.reduce((sum, each) => sum + each, 0) / 1024;
  assert.ok(size > 100, `${size} KB: the files were seen`);
  assert.ok(size <= maxPageSize, `${size} KB`);
  t.diagnostic(`${size.toFixed(1)} KB, scripts and styles by gzip`);
}

/** A provider that answers a call only when the test says so. */
export interface SlowProvider {
  /** The address for `api_base`. */
  readonly apiBase: string;
  /** Answers the oldest waiting call, or the next one to arrive. */
  answer(): Promise<void>;
}

/** Starts an OpenAI-compatible provider that ends with the scope. */
export async function startSlowProvider(t: Scope): Promise<SlowProvider> {
  const waiting: ServerResponse[] = [];
  const server = createServer((request, response) => {
    request.resume();
    waiting.push(response);
    server.emit('call');
  });
  const { url } = await listenFor(t, server);
  return {
    apiBase: `${url}/v1`,
    async answer() {
      if (waiting.length === 0) await once(server, 'call');
      waiting
        .shift()!
        .writeHead(200, { 'content-type': 'application/json' })
        .end(
          JSON.stringify({
            id: 'c1',
            object: 'chat.completion',
            model: 'm',
            choices: [{ index: 0, message: { role: 'assistant', content: 'ready' }, finish_reason: 'stop' }],
            usage: { prompt_tokens: 9, completion_tokens: 1, total_tokens: 10 },
          }),
        );
    },
  };
}

/** Measurements of scrolling: the number of frames, the longest in milliseconds, and the most list items added in a frame and present at the same time. */
interface Scrolling {
  readonly frames: number;
  readonly longestMs: number;
  readonly mostAdded: number;
  readonly mostPresent: number;
}

const scroll = `(region) => new Promise((resolve) => {
  const count = (nodes) => [...nodes].filter((node) => node.matches?.('[aria-posinset]')).length;
  const cost = { frames: 0, longestMs: 0, mostAdded: 0, mostPresent: 0 };
  let added = 0;
  const observer = new MutationObserver((records) => {
    for (const { addedNodes } of records) added += count(addedNodes);
  });
  observer.observe(region, { childList: true, subtree: true });
  let last;
  const step = (now) => {
    if (last !== undefined) cost.longestMs = Math.max(cost.longestMs, now - last);
    last = now;
    cost.frames += 1;
    cost.mostAdded = Math.max(cost.mostAdded, added);
    cost.mostPresent = Math.max(cost.mostPresent, region.querySelectorAll('[aria-posinset]').length);
    added = 0;
    if (region.scrollTop + region.clientHeight >= region.scrollHeight - 1) {
      observer.disconnect();
      return resolve(cost);
    }
    region.scrollTop += 300;
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})`;

/** Scrolls a list that renders visible rows only to its end, 300 pixels a frame. */
export const scrollToEnd = (page: Page, label: string): Promise<Scrolling> =>
  page.evaluate(`(${scroll})(document.querySelector('[aria-label="${label}"]'))`);

/** Where a part of the page is. A part that is not laid out yet, or is being replaced, has no box: it is waited for. */
export const boxOf = (part: Locator) =>
  until(
    async () => (await part.boundingBox()) ?? undefined,
    () => `a box of ${part}`,
  );
