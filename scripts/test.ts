import { once } from 'node:events';
import { existsSync, globSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

import { openStore } from '../src/handoff/store/store.ts';
import { prepareServer } from '../test/support/databases.ts';
import { skipWithoutPgbouncer, startPgbouncer } from '../test/support/pgbouncer.ts';
import { startPostgres, type TestPostgres } from '../test/support/postgres.ts';
import { debianPostgres, findProgram, findPythonWith } from '../test/support/programs.ts';
import { groupsOf, needsPostgres, runsAlone } from './test-files.ts';

/**
 * Runs the tests: `npm test`, or `npm test -- FILE ...` for some files or folders, with `--only PATTERN` for some titles.
 * All of them share one PostgreSQL, which starts if a file needs it. The whole suite runs some files again through PgBouncer,
 * and `--pgbouncer` runs the given ones through it. Suites that need a missing program are listed in one
 * line, which is a failure in CI. A file that the run leaves in the project's folder is a failure everywhere.
 */
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { only: { type: 'string' }, pgbouncer: { type: 'boolean' } },
});

/** The files that take longest. They are started first, so that none of them runs alone at the end. */
const longest = [
  'test/handoff/durability.test.ts',
  'test/browser/dashboard.test.ts',
  'test/package.test.ts',
  'test/handoff/serve.test.ts',
  'test/handoff/instances.test.ts',
  'test/fallback/durability.test.ts',
  'test/start.test.ts',
];

/** The contract suites that also run through PgBouncer: those of transactions, locks, long reads and many statements. */
const throughPgbouncer = [
  ...['batch-claim', 'batch-create', 'chain-packet', 'claim-next', 'claim-packet', 'create-packet', 'events', 'idempotency', 'leases'],
  ...['list-packets', 'patch-packet', 'respond-packet', 'tenants', 'webhooks'],
].map((name) => `test/handoff/http/${name}.test.ts`);

/** How many files one process runs. */
const groupSize = 8;

const files = positionals.length === 0 ? globSync('test/**/*.test.ts').sort() : positionals.flatMap(testFiles);

/** The test files that an argument names. */
function testFiles(named: string): string[] {
  const path = relative('', resolve(named));
  const found = existsSync(path) && statSync(path).isDirectory() ? globSync(`${path}/**/*.test.ts`).sort() : globSync(path);
  if (found.length > 0) return found;
  console.error(`There is no test file ${named}.`);
  process.exit(2);
}

/** The titles that a pattern means: as it is written, or as a regular expression. */
function patternsOf(only: string): RegExp[] {
  const asWritten = new RegExp(only.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'), 'i');
  try {
    return [asWritten, new RegExp(only, 'i')];
  } catch {
    return [asWritten];
  }
}

/** What suites need beyond `npm ci`: mostly the name of a Debian package, then the suites, and whether it is installed. */
const needed: readonly (readonly [name: string, suites: string, isThere?: boolean])[] = [
  ['redis-server', 'Redis suites'],
  ['chromium', 'browser suites'],
  ['zsh', 'completions for zsh'],
  ['fish', 'completions for fish'],
  ['python3', 'terminal suites'],
  ['webhook', 'the webhook receiver'],
  ['nginx', 'the proxy suite'],
  ['pgbouncer', 'the suites through PgBouncer'],
  ['prometheus', 'the monitoring suite'],
  ['strace', 'the system calls of the units'],
  ['postgresql', 'the suite of dumps', debianPostgres !== undefined],
  [
    'packages in examples/demo-agents',
    'the demonstration of agents',
    existsSync(new URL('../examples/demo-agents/node_modules', import.meta.url)),
  ],
  ['packages/python/.venv', 'the Python client', existsSync(new URL('../packages/python/.venv/newest', import.meta.url))],
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

// Shares compiled modules between the processes of a run.
const compileCache = fileURLToPath(new URL('../node_modules/.cache/compile', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'baton-tests-'));

/** The names in the project's folder, except `dist`, which `npm pack` builds. */
const namesHere = () => readdirSync('.').filter((name) => name !== 'dist');
const namesBefore = namesHere();

/** Writes modules that each import a group of files; `first` runs before them. */
function groupEntries(name: string, members: readonly string[], first = ''): string[] {
  const before = join(folder, `${name}.mjs`);
  writeFileSync(before, first);
  return groupsOf(members, groupSize).map((group, index) => {
    const entry = join(folder, `${name}-${index + 1}.mjs`);
    writeFileSync(entry, [before, ...group].map((file) => `import ${JSON.stringify(pathToFileURL(resolve(file)).href)};\n`).join(''));
    return entry;
  });
}

/** Groups of files whose stores are PostgreSQL through a PgBouncer. */
const bouncedEntries = (members: readonly string[], host: string): string[] =>
  groupEntries('pgbouncer', members, `process.env.BATON_TEST_PGBOUNCER = ${JSON.stringify(host)};\n`);

/** The files that the processes of the run start with, the longest first. */
function entries(): string[] {
  const isLong = (file: string) => longest.includes(file);
  const alone = files.filter(runsAlone);
  const together = files.filter((file) => !alone.includes(file));
  if (bouncer !== undefined && values.pgbouncer) return bouncedEntries(files, bouncer.host);
  const bounced = bouncer === undefined ? [] : bouncedEntries(throughPgbouncer, bouncer.host);
  const groups = [...bounced, ...groupEntries('group', together)];
  return [...longest.filter((file) => alone.includes(file)), ...groups, ...alone.filter((file) => !isLong(file))];
}

async function startServer(): Promise<TestPostgres> {
  const server = await startPostgres({ durable: false });
  await prepareServer(server.url, async (databaseUrl) => {
    const store = await openStore({ databaseUrl, clock: () => new Date(), newId: () => '' });
    await store.close();
  });
  return server;
}

const postgres = files.some(needsPostgres) ? await startServer() : undefined;
const isBounced = values.pgbouncer || (positionals.length === 0 && !skipWithoutPgbouncer);
const bouncer = isBounced && postgres !== undefined ? await startPgbouncer(postgres.url) : undefined;
// `node --test` would sort the files by name.
const results = run({
  files: entries(),
  // With four, programs that start share two cores with so many others that their limits in real time are at risk.
  concurrency: 3,
  timeout: 300_000,
  ...(values.only === undefined ? {} : { testNamePatterns: patternsOf(values.only) }),
  env: { ...process.env, ...(postgres && { BATON_TEST_POSTGRES: postgres.url }), NODE_COMPILE_CACHE: compileCache },
});
const report = results.compose(spec);
report.pipe(process.stdout);
let passed = false;
// A file without tests, or without any of the titles, is reported as a test with the name of the file.
let hasTests = false;
for (const event of ['test:pass', 'test:fail'] as const) {
  results.on(event, ({ name }) => {
    hasTests ||= !/\.(test\.ts|mjs)$/.test(name);
  });
}
results.on('test:summary', ({ file, success }) => {
  if (file === undefined) passed = success;
});
await once(report, 'end');
await bouncer?.stop();
await postgres?.stop();
rmSync(folder, { recursive: true, force: true });
if (!hasTests) console.error(values.only === undefined ? 'No test ran.' : `No test has a title that matches ${values.only}.`);
const left = namesHere().filter((name) => !namesBefore.includes(name));
if (left.length > 0) console.error(`The tests left files in this folder, instead of a temporary one: ${left.join(', ')}`);
process.exit(passed && hasTests && left.length === 0 ? 0 : 1);
