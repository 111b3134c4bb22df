import { once } from 'node:events';
import { globSync } from 'node:fs';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
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

/** The files that take longest. They are started first, so that none of them runs alone at the end. */
const longest = [
  'test/handoff/durability.test.ts',
  'test/browser/dashboard.test.ts',
  'test/package.test.ts',
  'test/handoff/serve.test.ts',
  'test/handoff/instances.test.ts',
  'test/handoff/http/search-packets.test.ts',
  'test/fallback/durability.test.ts',
  'test/start.test.ts',
];
const all = globSync('test/**/*.test.ts').sort();
const files = named.length > 0 ? named : [...longest, ...all.filter((file) => !longest.includes(file))];

/** Programs that suites need: the name of the Debian package, the suites, and whether it is installed. */
const needed: readonly (readonly [name: string, suites: string, isThere?: boolean])[] = [
  ['redis-server', 'Redis suites'],
  ['chromium', 'browser suites'],
  ['zsh', 'completions for zsh'],
  ['fish', 'completions for fish'],
  ['python3', 'terminal suites'],
  ['webhook', 'the webhook receiver'],
  ['nginx', 'the proxy suite'],
  ['prometheus', 'the monitoring suite'],
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
// `node --test` would sort the files by name.
const results = run({
  files,
  // With four, programs that start share two cores with so many others that their limits in real time are at risk.
  concurrency: 3,
  timeout: 300_000,
  env: { ...process.env, BATON_TEST_POSTGRES: postgres.url, NODE_COMPILE_CACHE: compileCache },
});
const report = results.compose(spec);
report.pipe(process.stdout);
let passed = false;
results.on('test:summary', ({ file, success }) => {
  if (file === undefined) passed = success;
});
await once(report, 'end');
await postgres.stop();
process.exit(passed ? 0 : 1);
