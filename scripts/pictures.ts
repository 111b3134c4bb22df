import { mkdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { launchBrowser } from '../test/support/browser.ts';
import { adminKey, packetRequest, startService, TestClock } from '../test/support/service.ts';

/**
 * `node scripts/pictures.ts [FOLDER]`: takes the pictures of the README, the inbox of the console and an answer page in light
 * and dark, into `docs/pictures`. CI takes them into another folder, since fonts differ between machines.
 */
const folder = resolve(process.argv[2] ?? fileURLToPath(new URL('../docs/pictures', import.meta.url)));

/** The largest picture, in bytes. */
const maxBytes = 150_000;

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

const ends: (() => unknown)[] = [];
try {
  const scope = { after: (end: () => unknown) => void ends.unshift(end) };
  const service = await startService(scope as Parameters<typeof startService>[0], {
    clock: new TestClock(new Date().toISOString()),
    settings: { SERVICE_WEBHOOK_ALLOW: '127.0.0.1' },
  });
  const address = await service.handoff.start();
  const call = async (method: string, path: string, body: unknown) => {
    const answer = await service.call(method, path, { body });
    if (answer.status >= 300) throw new Error(answer.text);
    return answer.body;
  };
  const ids: string[] = [];
  for (const { summary, ...hitl } of questions) {
    const { id } = await call('POST', '/packets', packetRequest({ context: { summary } }));
    await call('PATCH', `/packets/${id}`, { status: 'awaiting_human', hitl: { required: true, ...hitl } });
    ids.push(id);
  }
  await call('POST', '/channels', { kind: 'slack', target: 'http://127.0.0.1:9/services/T/B/x' });
  const { url } = await call('POST', `/packets/${ids[0]}/answer-links`, { responder: 'dana@example.com' });
  mkdirSync(folder, { recursive: true });
  const browser = await launchBrowser();
  scope.after(() => browser.close());
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await browser.newPage({ viewport: { width: 1120, height: 720 }, colorScheme, reducedMotion: 'reduce', locale: 'en-GB' });
    const take = async (name: string) => {
      const path = join(folder, `${name}-${colorScheme}.png`);
      await page.screenshot({ path });
      const { size } = statSync(path);
      if (size > maxBytes) throw new Error(`${path} has ${size} bytes, more than ${maxBytes}.`);
      console.log(`${path}: ${Math.round(size / 1000)} KB`);
    };
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
    await page.close();
  }
} finally {
  for (const end of ends) await end();
}
