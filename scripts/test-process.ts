import asyncHooks, { type HookCallbacks } from 'node:async_hooks';
import { isMainThread } from 'node:worker_threads';

/**
 * Loaded before the files of a test process (`--import`), and so in each thread that a service starts there, which needs none of it.
 *
 * `node:test` follows every asynchronous resource to the test that made it. Following promises makes each of them twenty times as
 * dear, so it follows only the others: an error that nobody catches still fails the run, but after a promise not in the name of
 * its test. Its stack is printed here. Where `node:test` knows the test, it fails the test and prints the stack again.
 *
 * `node:test` stops listening at `beforeExit`. From then on Node itself ends the process with an error after an uncaught exception,
 * but not after a rejection, since a listener remains: ours. It sets the exit code, by which the run fails.
 */
if (isMainThread) {
  const { createHook } = asyncHooks;
  asyncHooks.createHook = (callbacks: HookCallbacks) => createHook({ ...callbacks, trackPromises: false });
  process.on('uncaughtExceptionMonitor', (error) => console.error(error));
  process.on('unhandledRejection', (error) => {
    console.error(error);
    process.exitCode = 1;
  });
  await import('./test-usage.ts');
}
