import { type Browser, chromium } from 'playwright-core';

import { findProgram } from './programs.ts';

/** The path of Chromium; undefined if it is not installed. */
const chromiumPath = findProgram('chromium');

/** The `skip` of suites that need Chromium. */
export const withoutBrowser = chromiumPath === undefined ? 'there is no chromium on this machine' : false;

/** How long a page may take for what a test waits for, in milliseconds: longer than any machine needs. */
const patienceMs = 60_000;

/** Starts a Chromium without background requests. */
export async function launchBrowser(): Promise<Browser> {
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
  const newContext = browser.newContext.bind(browser);
  // `newPage` makes its context by it too.
  browser.newContext = async (options) => {
    const context = await newContext(options);
    context.setDefaultTimeout(patienceMs);
    return context;
  };
  return browser;
}
