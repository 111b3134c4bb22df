import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Browser, ConsoleMessage, Page, Request } from 'playwright-core';

import { chainRequest, type FallbackOptions, startFallback, type TestFallback } from './fallback.ts';

const axeSource = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

/** What ends with a test or a suite. */
interface Scope {
  after(work: () => unknown): void;
}

/** A fallback service that listens, and a browser that looks at its dashboard. */
export interface Dashboard {
  readonly service: TestFallback;
  /** `http://127.0.0.1:PORT`. */
  readonly address: string;
  readonly browser: Browser;
  /**
   * Loads a page below `/dashboard` in a tab that tests share, or in one whose clock they can turn: a tab of its own for each
   * would cost more than most tests. When the test ends, it fails if the page asked another host, broke its content
   * security policy, or wrote an error or a warning to the console.
   */
  open(t: Scope, path: string, tab?: 'usual' | 'with a clock'): Promise<Page>;
  /** Creates a chain and gives its id. */
  chain(changes?: Record<string, unknown>): Promise<string>;
  /** Runs a test of a chain and gives its result's id. */
  run(chainId: string, body?: Record<string, unknown>): Promise<string>;
}

/** Starts a service that ends with the suite, and looks at its dashboard with the browser. */
export async function startDashboard(t: Scope, browser: Browser, options: FallbackOptions = {}): Promise<Dashboard> {
  const service = await startFallback(t as Parameters<typeof startFallback>[0], options);
  const address = await service.fallback.start();
  const tabs = new Map<string, Promise<Page>>();
  t.after(async () => {
    for (const tab of tabs.values()) await (await tab).context().close();
  });
  return {
    service,
    address,
    browser,
    async open(scope, path, tab = 'usual') {
      if (!tabs.has(tab)) tabs.set(tab, openTab(browser, tab === 'with a clock'));
      const page = await tabs.get(tab)!;
      watch(scope, page, address);
      const answer = await page.goto(`${address}/dashboard${path}`);
      assert.equal(answer?.status(), 200);
      return page;
    },
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

async function openTab(browser: Browser, withClock: boolean): Promise<Page> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 900 },
    colorScheme: 'light',
    reducedMotion: 'reduce',
    locale: 'en-GB',
    permissions: ['clipboard-read', 'clipboard-write'],
  });
  const page = await context.newPage();
  if (withClock) await page.clock.install();
  page.setDefaultTimeout(20_000);
  return page;
}

/** What the browser itself notes of an answer that is no success. The page has to show it, and a test looks for that. */
const refusalNote = /^Failed to load resource: (the server responded with a status of 4|net::ERR_)/;

/** Fails the test at its end if the page strayed or complained meanwhile. */
function watch(scope: Scope, page: Page, address: string): void {
  const strayed: string[] = [];
  const complaints: string[] = [];
  const onRequest = (request: Request) => {
    const url = request.url();
    if (!url.startsWith(`${address}/`) && !url.startsWith(`blob:${address}/`)) strayed.push(url);
  };
  const onConsole = (message: ConsoleMessage) => {
    if (['error', 'warning'].includes(message.type()) && !refusalNote.test(message.text())) complaints.push(message.text());
  };
  const onError = (error: Error) => complaints.push(error.message);
  page.on('request', onRequest).on('console', onConsole).on('pageerror', onError);
  scope.after(async () => {
    page.off('request', onRequest).off('console', onConsole).off('pageerror', onError);
    await page.unrouteAll();
    assert.deepEqual(strayed, []);
    assert.deepEqual(complaints, []);
  });
}

/** Goes to another page as a link of the dashboard does: the document stays. */
export const go = (page: Page, path: string): Promise<void> =>
  page.evaluate(
    `history.pushState({ ...history.state, idx: (history.state?.idx ?? 0) + 1 }, '', ${JSON.stringify(`/dashboard${path}`)}), dispatchEvent(new PopStateEvent('popstate', { state: history.state }))`,
  );

/** Fails when axe finds a fault of accessibility in the page; with `colours`, when it finds one that the colour scheme decides. */
export async function assertAccessible(page: Page, { colours = false } = {}): Promise<void> {
  if (await page.evaluate(`typeof axe === 'undefined'`)) await page.evaluate(axeSource);
  const options = colours ? `{ runOnly: { type: 'rule', values: ['color-contrast', 'link-in-text-block'] } }` : '{}';
  const faults = await page.evaluate<string[]>(
    `axe.run(${options}).then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html, failureSummary }) => html + ' ' + failureSummary).join('; ')))`,
  );
  assert.deepEqual(faults, []);
}

/** Fails when the page is wider than its window. */
export async function assertFits(page: Page): Promise<void> {
  // Charts follow a new width in the frames after it.
  await page.waitForFunction('document.documentElement.scrollWidth <= document.documentElement.clientWidth');
}

/** A provider that answers a call only when it is told to. */
export interface SlowProvider {
  /** The address for `api_base`. */
  readonly apiBase: string;
  /** Answers the oldest call that waits, or the next one to come. */
  answer(): Promise<void>;
}

/** Starts a provider of the OpenAI kind that ends with the scope. */
export async function startSlowProvider(t: Scope): Promise<SlowProvider> {
  const waiting: ServerResponse[] = [];
  const server = createServer((request, response) => {
    request.resume();
    waiting.push(response);
    server.emit('call');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    apiBase: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
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
