import { mkdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import type { Browser, Page } from 'playwright-core';

import { launchBrowser } from '../test/support/browser.ts';
import { startFallback } from '../test/support/fallback.ts';
import { adminKey, packetRequest, startService, TestClock, type TestService } from '../test/support/service.ts';
import { supportChain } from '../test/support/support-chain.ts';

/**
 * `node scripts/pictures.ts [FOLDER]`: takes the pictures of the documents in light and dark into `docs/pictures`: the inbox of the
 * console, an answer page, and two pages of the dashboard. CI takes them into another folder, since fonts differ between machines.
 */
const folder = resolve(process.argv[2] ?? fileURLToPath(new URL('../docs/pictures', import.meta.url)));

/** The largest picture, in bytes. */
const maxBytes = 200_000;

const questions = [
  {
    question: 'Refund 42 EUR to Dana Lopez for order 4711?',
    reason: 'The amount is above the limit of 25 EUR that an agent may refund.',
    options: ['Approve', { value: 'half', label: 'Refund half' }, { value: 'reject', label: 'Reject and close', style: 'danger' }],
    responder: 'dana@example.com',
    timeout_seconds: 5400,
    summary:
      'The parcel arrived ten days late and damaged. The customer sent photos and asks for the whole amount; it is her first complaint.',
  },
  {
    question: 'Which of the two addresses should the replacement go to?',
    reason: 'The order and the account have different addresses.',
    timeout_seconds: 900,
    summary: 'The customer moved last week.',
  },
  {
    question: 'May the contract be sent without the annex?',
    reason: 'The annex is still with the lawyers.',
    options: ['Yes', 'No'],
    responder: 'legal@example.com',
    summary: 'Renewal of a yearly contract.',
  },
];

type Scope = Parameters<typeof startService>[0];

/** Opens a page in light and in dark; `take` takes a picture of it. */
async function inBoth(browser: Browser, show: (page: Page, take: (name: string) => Promise<void>) => Promise<void>): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await browser.newPage({ viewport: { width: 1120, height: 720 }, colorScheme, reducedMotion: 'reduce', locale: 'en-GB' });
    await show(page, async (name) => {
      const path = join(folder, `${name}-${colorScheme}.png`);
      await page.screenshot({ path });
      const { size } = statSync(path);
      if (size > maxBytes) throw new Error(`${path} has ${size} bytes, more than ${maxBytes}.`);
      console.log(`${path}: ${Math.round(size / 1000)} KB`);
    });
    await page.close();
  }
}

/** Calls a service under test. */
async function call(service: Pick<TestService, 'call'>, method: string, path: string, body: unknown) {
  const answer = await service.call(method, path, { body });
  if (answer.status >= 300) throw new Error(answer.text);
  return answer.body;
}

async function takeConsole(scope: Scope, browser: Browser): Promise<void> {
  const clock = new TestClock(new Date().toISOString());
  const service = await startService(scope, { clock, settings: { SERVICE_WEBHOOK_ALLOW: '127.0.0.1' } });
  const address = await service.handoff.start();
  const ids: string[] = [];
  for (const { summary, ...hitl } of questions) {
    const { id } = await call(service, 'POST', '/packets', packetRequest({ context: { summary } }));
    await call(service, 'PATCH', `/packets/${id}`, { status: 'awaiting_human', hitl: { required: true, ...hitl } });
    ids.push(id);
  }
  await call(service, 'POST', '/channels', { kind: 'slack', target: 'http://127.0.0.1:9/services/T/B/x' });
  const { url } = await call(service, 'POST', `/packets/${ids[0]}/answer-links`, { responder: 'dana@example.com' });
  await inBoth(browser, async (page, take) => {
    await page.goto(`${address}/console`);
    await page.getByLabel('Key', { exact: true }).fill(adminKey);
    await page.keyboard.press('Enter');
    await page.getByText('live', { exact: true }).waitFor();
    await page.getByRole('heading', { name: questions[0]!.question }).waitFor();
    await page.keyboard.press('1');
    await take('inbox');
    await page.setViewportSize({ width: 720, height: 720 });
    await page.goto(url.replace(/^https?:\/\/[^/]+/, address));
    await take('answer');
  });
}

async function takeDashboard(scope: Scope, browser: Browser): Promise<void> {
  const service = await startFallback(scope);
  const address = await service.fallback.start();
  const chain = await call(service, 'POST', '/chains', supportChain);
  const result = await call(service, 'POST', `/chains/${chain.id}/test`, { preset: 'coverage', prompt_count: 120, seed: 1 });
  await inBoth(browser, async (page, take) => {
    await page.setViewportSize({ width: 1280, height: 920 });
    await page.goto(`${address}/dashboard/results/${result.id}`);
    await page.getByRole('heading', { name: 'Checks' }).waitFor();
    await take('result');
    await page.goto(`${address}/dashboard/chains/${chain.id}/what-if`);
    await page
      .getByRole('button', { name: /retry 2×/ })
      .nth(1)
      .click();
    await page.getByText('mistral-large answers').waitFor();
    await take('what-if');
  });
}

const ends: (() => unknown)[] = [];
try {
  const scope = { after: (end: () => unknown) => void ends.unshift(end) } as Scope;
  mkdirSync(folder, { recursive: true });
  const browser = await launchBrowser();
  ends.unshift(() => browser.close());
  await takeConsole(scope, browser);
  await takeDashboard(scope, browser);
} finally {
  for (const end of ends) await end();
}
