import { spawn } from 'node:child_process';
import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { openStore } from '../src/handoff/store/store.ts';
import { prepareServer } from '../test/support/databases.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { findProgram, findPythonWith } from '../test/support/programs.ts';

/**
 * Runs the tests: `npm test`, or `npm test -- FILE ...` for some. All of them share one PostgreSQL. Suites that need a
 * missing program are listed in one line, which is a failure in CI.
 */
const named = process.argv.slice(2);
const files = named.length > 0 ? named : globSync('test/**/*.test.ts').sort();

/** Programs that suites need: the name of the Debian package, the suites, and whether it is installed. */
const needed: readonly (readonly [name: string, suites: string, isThere?: boolean])[] = [
  ['redis-server', 'Redis suites'],
  ['chromium', 'browser suites'],
  ['zsh', 'completions for zsh'],
  ['fish', 'completions for fish'],
  ['python3', 'terminal suites'],
  ['webhook', 'the webhook receiver'],
  ['python3-websockets', 'the WebSocket client in Python', findPythonWith('websockets') !== undefined],
];
const missing = needed.filter(([name, , isThere = findProgram(name) !== undefined]) => !isThere);
if (missing.length > 0) {
  const skipped = missing.map(([name, suites]) => `${suites} (no ${name})`).join(', ');
  console.log(`Skipped on this machine: ${skipped}`);
  if (process.env.CI === 'true') {
    console.error('In CI no suite may be skipped.');
    process.exit(1);
  }
}

// Shares compiled modules between the hundreds of processes of a run.
const compileCache = fileURLToPath(new URL('../node_modules/.cache/compile', import.meta.url));

const postgres = await startPostgres({ durable: false });
await prepareServer(postgres.url, async (databaseUrl) => {
  const store = await openStore({ databaseUrl, clock: () => new Date(), newId: () => '' });
  await store.close();
});
const child = spawn(process.execPath, ['--test', '--test-reporter=spec', '--test-concurrency=3', '--test-timeout=300000', ...files], {
  stdio: 'inherit',
  env: { ...process.env, BATON_TEST_POSTGRES: postgres.url, NODE_COMPILE_CACHE: compileCache },
});
const [code] = await new Promise<[number | null]>((resolve) => {
  child.on('exit', (status) => resolve([status]));
});
await postgres.stop();
process.exit(code ?? 1);
