import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Browser, Page } from 'playwright-core';

import { type Pages, pagesOf } from './dashboard.ts';
import { newTenant, packetRequest, startService, TestClock, type TestService } from './service.ts';

/** A listening handoff service, and a browser for its console. */
export class TestConsole {
  browser!: Browser;
  service!: TestService;
  pages!: Pages;

  /** Starts the service, which ends with the scope. */
  async start(scope: { after(work: () => unknown): void }, browser: Browser): Promise<void> {
    this.browser = browser;
    this.service = await startService(scope as TestContext, {
      clock: new TestClock(new Date().toISOString()),
      settings: { SERVICE_WEBHOOK_ALLOW: '127.0.0.1' },
    });
    this.pages = pagesOf(scope, browser, `${await this.service.handoff.start()}/console`);
  }

  /** Calls the service, and returns the body of the answer. */
  async call(key: string, method: string, path: string, body?: unknown) {
    const answer = await this.service.call(method, path, { key, ...(body === undefined ? {} : { body }) });
    assert.ok(answer.status < 300, answer.text);
    return answer.body;
  }

  /** Creates a packet that asks, and returns its id. */
  async ask(key: string, hitl: object, changes = {}): Promise<string> {
    const { id } = await this.call(key, 'POST', '/packets', packetRequest(changes));
    await this.call(key, 'PATCH', `/packets/${id}`, { status: 'awaiting_human', hitl });
    return id;
  }

  /** Enters a key that the page forgets when it is loaded again, since the next test has another one. */
  async enterKey(page: Page, key: string): Promise<void> {
    await page.getByLabel('Key', { exact: true }).fill(key);
    await page.getByLabel('Key', { exact: true }).press('Enter');
  }

  /** Signs in at a page, with a key of a new tenant unless one is given. */
  async signIn(t: TestContext, path: string, key?: string): Promise<{ page: Page; key: string }> {
    const used = key ?? (await newTenant(this.service, { tier: 'business' })).key;
    const page = await this.pages.open(t, path);
    await page.evaluate('localStorage.clear()');
    await this.enterKey(page, used);
    await page.getByText('live', { exact: true }).waitFor();
    return { page, key: used };
  }

  /** The history of a packet. */
  async historyOf(key: string, id: string) {
    return (await this.call(key, 'GET', `/packets/${id}/history`)).events;
  }
}

/** What the questions of tests have in common. */
export const question = { required: true, reason: 'The amount is above the limit.', responder: 'dana@example.com' };

/** A question with three options, of which one is dangerous. */
export const refund = {
  ...question,
  question: 'Refund 42 EUR?',
  options: ['Approve', { value: 'half', label: 'Refund half' }, { value: 'reject', label: 'Reject', style: 'danger' }],
};
