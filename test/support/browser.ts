import { type Browser, chromium } from 'playwright-core';

import { findProgram } from './programs.ts';

/** Where Chromium is; undefined on a machine without it. */
export const chromiumPath = findProgram('chromium');

/** What `skip` of a suite says of this machine. */
export const withoutBrowser = chromiumPath === undefined ? 'there is no chromium on this machine' : false;

/** Starts a Chromium that speaks to nobody unasked. */
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
