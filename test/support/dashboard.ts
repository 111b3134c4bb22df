import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

import { chainRequest, type FallbackOptions, startFallback, type TestFallback } from './fallback.ts';
import { findProgram } from './programs.ts';

/** Where Chromium is; undefined on a machine without it. */
export const chromiumPath = findProgram('chromium');

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
   * Opens a page below `/dashboard` in a context of its own. When the test ends, it fails if the page asked another host,
   * broke its content security policy, or wrote an error or a warning to the console.
   */
  open(t: Scope, path: string, options?: BrowserContextOptions): Promise<Page>;
  /** Creates a chain and gives its id. */
  chain(changes?: Record<string, unknown>): Promise<string>;
  /** Runs a test of a chain and gives its result's id. */
  run(chainId: string, body?: Record<string, unknown>): Promise<string>;
}

/** Starts a service and a browser that end with the suite. */
export async function startDashboard(t: Scope, options: FallbackOptions = {}): Promise<Dashboard> {
  const service = await startFallback(t as Parameters<typeof startFallback>[0], options);
  const address = await service.fallback.start();
  const browser = await chromium.launch({
    executablePath: chromiumPath!,
    args: [
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
  t.after(() => browser.close());
  return {
    service,
    address,
    browser,
    open: (scope, path, contextOptions) => open({ browser, address }, scope, path, contextOptions),
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

/** What the browser itself notes of an answer that is no success. The page has to show it, and a test looks for that. */
const refusalNote = /^Failed to load resource: (the server responded with a status of 4|net::ERR_(INTERNET_DISCONNECTED|FAILED))/;

async function open(
  { browser, address }: Pick<Dashboard, 'browser' | 'address'>,
  scope: Scope,
  path: string,
  options: BrowserContextOptions = {},
): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: 'light', locale: 'en-GB', ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const strayed: string[] = [];
  const complaints: string[] = [];
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(`${address}/`) && !url.startsWith(`blob:${address}/`)) strayed.push(url);
  });
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()) && !refusalNote.test(message.text())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  scope.after(async () => {
    await context.close();
    assert.deepEqual(strayed, []);
    assert.deepEqual(complaints, []);
  });
  const answer = await page.goto(`${address}/dashboard${path}`);
  assert.equal(answer?.status(), 200);
  return page;
}

/** Fails when axe finds a fault of accessibility in the page. */
export async function assertAccessible(page: Page): Promise<void> {
  await page.evaluate(`typeof axe === 'undefined' && (() => { ${axeSource} })()`);
  const faults = await page.evaluate<string[]>(
    `axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html, failureSummary }) => html + ' ' + failureSummary).join('; ')))`,
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
