import { after, before, describe } from 'node:test';

import { launchBrowser, withoutBrowser } from '../support/browser.ts';
import { TestConsole } from '../support/console.ts';
import { inboxTests } from './console/inbox.ts';
import { keyTests } from './console/keys.ts';
import { packetTests } from './console/packets.ts';
import { receiverTests } from './console/receivers.ts';
import { shellTests } from './console/shell.ts';

// All tests share a browser, a service and a tab. Each has a tenant of its own, so that its inbox has its own questions only.
describe('the console', { skip: withoutBrowser }, () => {
  const on = new TestConsole();
  const afters: (() => unknown)[] = [];
  const scope = { after: (work: () => unknown) => void afters.unshift(work) };
  before(async () => {
    const browser = await launchBrowser();
    scope.after(() => browser.close());
    await on.start(scope, browser);
  });
  after(async () => {
    for (const work of afters) await work();
  });

  describe('questions and answers', () => inboxTests(on));
  describe('packets, agents and figures', () => packetTests(on));
  describe('webhooks and channels', () => receiverTests(on));
  describe('keys', () => keyTests(on));
  describe('every page', () => shellTests(on));
});
