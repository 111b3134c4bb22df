import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, type TestContext, test } from 'node:test';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';

import { launchBrowser, withoutBrowser } from '../support/browser.ts';
import { assertAccessible, boxOf } from '../support/dashboard.ts';
import { packetIn, question } from '../support/life.ts';
import { startService, TestClock, type TestService } from '../support/service.ts';

const options = ['Approve', { value: 'refuse', label: 'Refuse it', style: 'danger' }];
const phone = { viewport: { width: 360, height: 640 } };

// All tests share a browser and a service; each has packets and a context of its own.
describe('the answer page', { skip: withoutBrowser }, () => {
  let browser: Browser;
  let service: TestService;
  let address: string;
  const clock = new TestClock(new Date().toISOString());
  const afters: (() => unknown)[] = [];
  before(async () => {
    browser = await launchBrowser();
    afters.unshift(() => browser.close());
    service = await startService({ after: (work: () => unknown) => void afters.unshift(work) } as TestContext, { clock });
    address = await service.handoff.start();
  });
  after(async () => {
    for (const work of afters) await work();
  });

  /** A packet that asks, and the address of an answer page. */
  async function asking(hitl: object = {}, request: object = {}): Promise<{ id: string; linkId: string; url: string }> {
    const context = {
      summary: 'Order 4711 was charged twice.',
      conversation_state: [{ role: 'user', content: `Please refund it: ${'a-word-that-is-longer-than-the-window'.repeat(4)}` }],
    };
    const { id } = await packetIn(service, 'awaiting_human', { context, hitl: { ...question, options, ...hitl } });
    const made = await service.call('POST', `/packets/${id}/answer-links`, { body: request });
    assert.equal(made.status, 201, made.text);
    return { id, linkId: made.body.id, url: `${address}${new URL(made.body.url).pathname}` };
  }
  /** Opens a page in a new context that ends with the test. The test fails if the page sends a request elsewhere or logs an error. */
  async function open(t: TestContext, url: string, settings: BrowserContextOptions = {}): Promise<Page> {
    const context = await browser.newContext({ ...phone, ...settings });
    const page = await context.newPage();
    const faults: string[] = [];
    page.on('request', (request) => {
      if (!request.url().startsWith(url) && !request.url().startsWith('data:')) faults.push(request.url());
      if (request.headers().referer !== undefined) faults.push('a referrer');
    });
    page.on('pageerror', ({ message }) => faults.push(message));
    t.after(async () => {
      await context.close();
      assert.deepEqual(faults, []);
    });
    await page.goto(url);
    return page;
  }
  const hitlOf = async (id: string) => (await service.call('GET', `/packets/${id}`)).body.hitl;
  const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name });
  const isWider = (page: Page) => page.evaluate<boolean>('document.documentElement.scrollWidth > document.documentElement.clientWidth');
  const focusOn = async (page: Page, text: string) => {
    for (let step = 0; step < 20; step += 1) {
      await page.keyboard.press('Tab');
      if ((await page.locator(':focus').textContent()) === text) return;
    }
    assert.fail(`Tab does not reach ${text}`);
  };

  test('is answered without scripts and by keyboard alone; Enter in the name sends nothing', async (t) => {
    const { id, url } = await asking();
    const page = await open(t, url, { javaScriptEnabled: false });
    await heading(page, 'Refund 59.90?').waitFor();
    assert.equal(await isWider(page), false);
    // The first stop is what the question is about, which scrolls in a narrow window.
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await page.keyboard.type('Dana');
    await page.keyboard.press('Enter');
    assert.equal((await hitlOf(id)).response, null);
    await focusOn(page, 'Approve');
    await page.keyboard.press('Enter');
    await heading(page, 'Your answer is recorded').waitFor();
    const { response, responded_by } = await hitlOf(id);
    assert.deepEqual([response, responded_by], ['Approve', 'Dana']);
    await page.reload();
    await heading(page, 'This question has been answered').waitFor();
  });

  test('shows Markdown as elements without scripts; with them, the time of the reader beside UTC', async (t) => {
    const context = { summary: 'She paid **twice**:\n\n- 59.90 by card\n- <b>59.90</b> by [bank](javascript:alert(1))' };
    const conversation_state = [
      { role: 'tool', content: '[{"order_id": 4711, "paid": [59.9, 59.9]}]' },
      { role: 'user', content: '[Refund](https://example.com) it' },
    ];
    const { id } = await packetIn(service, 'awaiting_human', {
      context: { ...context, conversation_state },
      hitl: { ...question, options },
    });
    const made = await service.call('POST', `/packets/${id}/answer-links`, { body: { expires_in: 7200 } });
    const url = `${address}${new URL(made.body.url).pathname}`;
    const page = await open(t, url, { javaScriptEnabled: false, timezoneId: 'Asia/Tokyo' });
    await page.locator('strong', { hasText: 'twice' }).waitFor();
    assert.equal(await page.locator('.about .markdown li').count(), 2);
    assert.equal(await page.locator('.about b, .about a').count(), 0);
    // Data of programs is folded away, and a message in words is not.
    const data = page.getByText('"order_id": 4711');
    assert.equal(await data.isVisible(), false);
    await page.getByText('Data, 42 characters').click();
    await data.waitFor();
    await page.getByText('Refund it').waitFor();
    const time = /^\d+ \w+ at \d\d:\d\d UTC$/;
    assert.match((await page.locator('time').textContent()) ?? '', time);
    await page.getByText('Answer within 2 hours').waitFor();
    const scripted = await open(t, url, { timezoneId: 'Asia/Tokyo' });
    assert.equal(await isWider(scripted), false);
    assert.match((await scripted.locator('time').textContent()) ?? '', /^\d+ \w+ at \d\d:\d\d (GMT\+9|JST) \(\d+ \w+ at \d\d:\d\d UTC\)$/);
  });

  test('stands beside what it is about in a wide window, and no option but a dangerous one is painted', async (t) => {
    const { url } = await asking();
    const page = await open(t, url, { viewport: { width: 1280, height: 800 } });
    const approve = page.getByRole('button', { name: 'Approve' });
    for (const part of [approve, page.getByText('Order 4711 was charged twice.')]) {
      const { y, height } = await boxOf(part);
      assert.ok(y + height < 800, 'it is in sight');
    }
    const fill = await page.evaluate<string>("getComputedStyle(document.querySelector('button.plain')).backgroundColor");
    assert.equal(fill, 'rgba(0, 0, 0, 0)');
    // In a narrow window both are near: what it is about scrolls.
    await page.setViewportSize({ width: 360, height: 640 });
    assert.ok((await boxOf(approve)).y < 900);
  });

  test('asks once more before it sends a dangerous option', async (t) => {
    const { id, url } = await asking({}, { responder: 'dana' });
    const page = await open(t, url, { javaScriptEnabled: false });
    await focusOn(page, 'Refuse it');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Confirm: Refuse it' }).waitFor();
    assert.equal((await hitlOf(id)).response, null);
    await focusOn(page, 'Confirm: Refuse it');
    await page.keyboard.press('Enter');
    await heading(page, 'Your answer is recorded').waitFor();
    assert.equal((await hitlOf(id)).response, 'refuse');
  });

  test('takes a free-text answer, and the form of a schema with the faults that the browser can’t find', async (t) => {
    const own = await asking({}, { responder: 'dana' });
    const page = await open(t, own.url, { javaScriptEnabled: false });
    await page.getByText('Answer in your own words').click();
    await page.getByLabel('Another answer').fill('Half of it');
    await page.getByRole('button', { name: 'Send this answer' }).click();
    await heading(page, 'Your answer is recorded').waitFor();
    assert.equal((await hitlOf(own.id)).response, 'Half of it');

    const properties = {
      amount: { type: 'number', title: 'Amount', maximum: 50 },
      until: { type: 'string', format: 'date-time', title: 'Until' },
    };
    const schema = { type: 'object', properties, required: ['amount'] };
    const form = await asking({ options: undefined, schema }, { responder: 'dana' });
    const second = await open(t, form.url, { javaScriptEnabled: false });
    await second.getByLabel('Amount').fill('42');
    await second.getByLabel('Until').fill('tomorrow');
    await second.getByRole('button', { name: 'Send' }).click();
    await second.getByRole('alert').waitFor();
    assert.equal(await second.getByLabel('Amount').inputValue(), '42', 'what was entered is kept');
    await second.getByLabel('Until').fill('');
    await second.getByRole('button', { name: 'Send' }).click();
    await heading(second, 'Your answer is recorded').waitFor();
    assert.deepEqual((await hitlOf(form.id)).data, { amount: 42 });
  });

  test('says why a link has ended, and is accessible in each state, light and dark, narrow and wide', async (t) => {
    const [openLink, revoked, withdrawn, expired] = [await asking(), await asking(), await asking(), await asking({}, { expires_in: 60 })];
    assert.equal((await service.call('DELETE', `/answer-links/${revoked.linkId}`)).status, 204);
    assert.equal((await service.call('DELETE', `/packets/${withdrawn.id}/question`)).status, 200);
    clock.turn(61);
    const states = [
      [openLink.url, 'Refund 59.90?'],
      [revoked.url, 'This link was revoked'],
      [withdrawn.url, 'This link has expired'],
      [expired.url, 'This link has expired'],
      [openLink.url.replace(/[0-9a-f]{64}$/, 'ab'.repeat(32)), 'There is no such link'],
    ] as const;
    for (const [url, name] of states) {
      const page = await open(t, url, { colorScheme: 'light' });
      await heading(page, name).waitFor();
      await assertAccessible(page);
      await page.emulateMedia({ colorScheme: 'dark' });
      await assertAccessible(page, { colours: true });
      for (const width of [320, 360, 768, 2560]) {
        await page.setViewportSize({ width, height: 640 });
        assert.equal(await isWider(page), false, `${name} at ${width} pixels`);
      }
    }
  });

  test('is not shown in a frame of another page', async (t) => {
    const { url } = await asking();
    const context = await browser.newContext();
    t.after(() => context.close());
    const page = await context.newPage();
    // Browsers keep public pages from local addresses anyhow, so the other page is local, too.
    const other = createServer((_, response) => response.setHeader('content-type', 'text/html').end(`<iframe src="${url}"></iframe>`));
    t.after(() => other.close());
    await once(other.listen(0, 'localhost'), 'listening');
    await page.goto(`http://localhost:${(other.address() as AddressInfo).port}/`);
    const [frame] = page.frames().slice(1);
    await frame!.waitForLoadState();
    assert.equal(await frame!.getByText('Refund 59.90?').count(), 0);
  });
});
