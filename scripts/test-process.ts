import asyncHooks, { type HookCallbacks } from 'node:async_hooks';
import { isMainThread } from 'node:worker_threads';

/**
 * Loaded before the files of a test process (`--import`), and so in each thread that a service starts there, which needs none of it.
 *
 * `node:test` follows every asynchronous resource to the test that made it. Following promises makes each of them twenty times as
 * dear, so it follows only the others: an error that nobody catches still fails the run, but after a promise not in the name of
 * its test. Its stack is printed instead.
 */
if (isMainThread) {
  const { createHook } = asyncHooks;
  asyncHooks.createHook = (callbacks: HookCallbacks) => createHook({ ...callbacks, trackPromises: false });
  process.on('uncaughtExceptionMonitor', (error) => console.error(error));
  process.on('unhandledRejection', (error) => console.error(error));
  await import('./test-usage.ts');
}
