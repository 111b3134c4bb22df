import { type Browser, chromium } from 'playwright-core';

import { findProgram } from './programs.ts';

/** The path of Chromium; undefined if it is not installed. */
const chromiumPath = findProgram('chromium');

/** The `skip` of suites that need Chromium. */
export const withoutBrowser = chromiumPath === undefined ? 'there is no chromium on this machine' : false;

/** Starts a Chromium without background requests. */
export const launchBrowser = (): Promise<Browser> =>
  chromium.launch({
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
