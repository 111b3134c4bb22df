import { after, before, describe } from 'node:test';
import type { Browser } from 'playwright-core';

import { launchBrowser, withoutBrowser } from '../support/browser.ts';
import { type Dashboard, type SlowProvider, startDashboard, startSlowProvider } from '../support/dashboard.ts';
import { chainTests } from './dashboard/chains.ts';
import { exportTests } from './dashboard/exports.ts';
import { keyboardTests } from './dashboard/keyboard.ts';
import { keyTests } from './dashboard/keys.ts';
import { markupTests } from './dashboard/markup.ts';
import { shellTests } from './dashboard/shell.ts';
import { testTests } from './dashboard/tests.ts';

// All tests share a browser and a tab, since starting a browser takes longer than most tests.
describe('the dashboard', { skip: withoutBrowser }, () => {
  let browser: Browser;
  let dashboard: Dashboard;
  let provider: SlowProvider;
  const afters: (() => unknown)[] = [];
  const scope = { after: (work: () => unknown) => void afters.unshift(work) };
  before(async () => {
    browser = await launchBrowser();
    scope.after(() => browser.close());
    provider = await startSlowProvider(scope);
    dashboard = await startDashboard(scope, browser, { flags: { allowLive: 'true' }, environment: { SERVICE_LIVE_ALLOW: '127.0.0.1' } });
  });
  after(async () => {
    for (const work of afters) await work();
  });

  describe('every page', () => shellTests(() => dashboard));
  describe('by keyboard', () => keyboardTests(() => dashboard));
  describe('chains', () => chainTests(() => dashboard));
  describe('what happens if, and tests', () =>
    testTests(
      () => dashboard,
      () => provider,
    ));
  describe('exports, templates and imports', () => exportTests(() => dashboard));
  describe('stored markup', () => markupTests(() => dashboard));
  describe('of a service with keys', () => keyTests(() => browser));
});
