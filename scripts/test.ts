import { once } from 'node:events';
import { existsSync, globSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
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
import { costsOf } from './test-costs.ts';
import { bySize, groupsOf, needsPostgres, replacesParts, runsAlone, startsPrograms } from './test-files.ts';

/**
 * Runs tests. `npm test` runs those of promises, which need nothing but Node and npm. `npm run test:programs` (`--programs`) runs
 * the others: those of files that start, kill, upgrade and pack programs and drive browsers and shells, and a few contract suites
 * again through PgBouncer. `npm test -- FILE ...` runs some files or folders, with `--only PATTERN` those with some titles, and with
 * `--store NAME` only on one store: `memory`, `disk`, `postgresql` or `pgbouncer`.
 *
 * All of them share one PostgreSQL, which starts if a file needs it. Suites that need a missing program are listed in one line,
 * which is a failure in CI. A file that the run leaves in the project's folder is a failure everywhere. At the end, the run prints
 * its processor time by store and the ten files that took most of it.
 */
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { only: { type: 'string' }, programs: { type: 'boolean', default: false }, store: { type: 'string' } },
});

const storeNames = ['memory', 'disk', 'postgresql', 'pgbouncer'];
if (values.store !== undefined && !storeNames.includes(values.store)) {
  console.error(`--store must be one of ${storeNames.join(', ')}.`);
  process.exit(2);
}

/** The contract suites that run again through PgBouncer: those of claims, groups, streams and long reads. `.ci/full` runs all. */
const throughPgbouncer = ['batch-create', 'claim-next', 'events', 'list-packets'].map((name) => `test/handoff/http/${name}.test.ts`);

/** How many processes run at once: as many as the machine has processors, and one more, since some of them wait. */
const atOnce = availableParallelism() + 1;

const files =
  positionals.length === 0
    ? globSync('test/**/*.test.ts')
        .filter((file) => startsPrograms(file) === values.programs)
        .sort()
    : positionals.flatMap(testFiles);

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
const missing = files.some(startsPrograms) ? needed.filter(([name, , isThere = findProgram(name) !== undefined]) => !isThere) : [];
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
const usage = join(folder, 'usage');
mkdirSync(usage);

/** The names in the project's folder, except `dist`, which `npm pack` builds. */
const namesHere = () => readdirSync('.').filter((name) => name !== 'dist');
const namesBefore = namesHere();

/** Writes modules that each import one of at most `most` groups of files; `first` runs before them. */
function groupEntries(name: string, members: readonly string[], most: number, first = ''): string[] {
  const before = join(folder, `${name}.mjs`);
  writeFileSync(before, first);
  return groupsOf(members, Math.min(most, Math.ceil(members.length / 4))).map((group, index) => {
    const entry = join(folder, `${name}-${index + 1}.mjs`);
    writeFileSync(entry, [before, ...group].map((file) => `import ${JSON.stringify(pathToFileURL(resolve(file)).href)};\n`).join(''));
    return entry;
  });
}

/** The files that the processes of the run start with. */
function entries(): string[] {
  const bounced = groupEntries('pgbouncer', isAgain ? throughPgbouncer : [], 1, storeIs('pgbouncer'));
  const together = files.filter((file) => !runsAlone(file));
  const [replacing, others] = [together.filter(replacesParts), together.filter((file) => !replacesParts(file))];
  return [
    ...bySize(files.filter(runsAlone)),
    ...bounced,
    ...groupEntries('replacing', replacing, atOnce),
    // Twice as many groups as run at once, so that the last ones end at about the same time.
    ...groupEntries('group', others, 2 * atOnce),
  ];
}

/** Sets the store of all suites, as a statement of a module. */
const storeIs = (name: string) => `process.env.BATON_TEST_STORE = ${JSON.stringify(name)};\n`;

async function startServer(): Promise<TestPostgres> {
  const server = await startPostgres({ durable: false });
  await prepareServer(server.url, async (databaseUrl) => {
    const store = await openStore({ databaseUrl, clock: () => new Date(), newId: () => '' });
    await store.close();
  });
  return server;
}

const postgres = files.some(needsPostgres) ? await startServer() : undefined;
/** Whether some suites run again through PgBouncer. */
const isAgain = values.programs && positionals.length === 0 && skipWithoutPgbouncer === false;
const bouncer = postgres !== undefined && (isAgain || values.store === 'pgbouncer') ? await startPgbouncer(postgres.url) : undefined;
// `node --test` would sort the files by name.
const results = run({
  files: entries(),
  concurrency: atOnce,
  timeout: 300_000,
  execArgv: ['--import', new URL('./test-process.ts', import.meta.url).href],
  ...(values.only === undefined ? {} : { testNamePatterns: patternsOf(values.only) }),
  env: {
    ...process.env,
    ...(postgres && { BATON_TEST_POSTGRES: postgres.url }),
    ...(bouncer && { BATON_TEST_PGBOUNCER: bouncer.host }),
    ...(values.store === undefined ? {} : { BATON_TEST_STORE: values.store }),
    BATON_TEST_USAGE: usage,
    NODE_COMPILE_CACHE: compileCache,
  },
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
const fileOfTitle = new Map<string, string>();
results.on('test:start', ({ name, nesting, file }) => {
  if (nesting === 0 && file !== undefined) fileOfTitle.set(name, file);
});
results.on('test:summary', ({ file, success }) => {
  if (file === undefined) passed = success;
});
await once(report, 'end');
await bouncer?.stop();
await postgres?.stop();
console.log(costsOf(usage, fileOfTitle));
rmSync(folder, { recursive: true, force: true });
if (!hasTests) console.error(values.only === undefined ? 'No test ran.' : `No test has a title that matches ${values.only}.`);
const left = namesHere().filter((name) => !namesBefore.includes(name));
if (left.length > 0) console.error(`The tests left files in this folder, instead of a temporary one: ${left.join(', ')}`);
process.exit(passed && hasTests && left.length === 0 ? 0 : 1);
