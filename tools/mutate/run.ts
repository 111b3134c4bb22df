import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

import { startsPrograms } from '../../scripts/test-files.ts';
import { type Change, changesOf } from './changes.ts';

/**
 * Makes small wrong changes to the code and tells which of them no test finds: `node tools/mutate/run.ts src/handoff/rules ...`.
 * Each change runs the test files that execute its place, on SQLite in memory, the nearest first, until one fails. `--count N` takes
 * N changes of all, always the same for one `--seed N`; `--most N` runs at most N files for each, and `--tests FOLDER` only those of a
 * folder of `test`. By hand: it takes hours for a service.
 */
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    count: { type: 'string', default: '100' },
    seed: { type: 'string', default: '1' },
    most: { type: 'string', default: '20' },
    tests: { type: 'string' },
  },
});

const root = fileURLToPath(new URL('../../', import.meta.url));

/** A run of a test file ends after so many seconds, as a failure: a change may make a loop endless. */
const limitSeconds = 120;

/** A copy of the checkout, in which files are changed. */
const copy = mkdtempSync(join(tmpdir(), 'baton-mutate-'));
for (const name of readdirSync(root).filter((one) => !['.git', 'node_modules', 'dist', 'data'].includes(one)))
  cpSync(join(root, name), join(copy, name), { recursive: true, filter: (path) => !/node_modules|\.venv/.test(path) });
symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));

/** Runs a test file; resolves with whether it passed. */
async function passes(file: string, environment: Readonly<Record<string, string>> = {}): Promise<boolean> {
  const env = { ...process.env, BATON_TEST_STORE: 'memory', NODE_COMPILE_CACHE: join(copy, '.cache'), ...environment };
  const child: ChildProcess = spawn(process.execPath, [file], { cwd: copy, env, stdio: 'ignore' });
  const late = setTimeout(() => child.kill('SIGKILL'), limitSeconds * 1000);
  const [code] = (await once(child, 'close')) as [number | null];
  clearTimeout(late);
  return code === 0;
}

interface Range {
  readonly startOffset: number;
  readonly endOffset: number;
  readonly count: number;
}

/** What a test file executes of each source file: the ranges of its functions, outer ones first. */
type Coverage = ReadonlyMap<string, readonly Range[]>;

/** Runs a test file once, and returns what it executes and how long it takes; undefined if it does not pass as it is. */
async function coverageOf(file: string): Promise<{ coverage: Coverage; ms: number } | undefined> {
  const folder = join(copy, '.coverage');
  mkdirSync(folder, { recursive: true });
  const begun = performance.now();
  const passed = await passes(file, { NODE_V8_COVERAGE: folder });
  const ms = performance.now() - begun;
  const coverage = new Map<string, Range[]>();
  for (const name of readdirSync(folder)) {
    const { result } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as {
      result: { url: string; functions: { ranges: Range[] }[] }[];
    };
    for (const { url, functions } of result) {
      const prefix = `${pathToFileURL(copy).href}/`;
      if (url.startsWith(`${prefix}src/`))
        coverage.set(
          url.slice(prefix.length),
          functions.flatMap(({ ranges }) => ranges),
        );
    }
  }
  rmSync(folder, { recursive: true });
  return passed ? { coverage, ms } : undefined;
}

/** Whether the innermost range at an offset was executed. */
function isExecuted(ranges: readonly Range[], offset: number): boolean {
  const around = ranges.filter(({ startOffset, endOffset }) => startOffset <= offset && offset < endOffset);
  const sizeOf = ({ startOffset, endOffset }: Range) => endOffset - startOffset;
  const innermost = around.reduce<Range | undefined>(
    (one, other) => (one === undefined || sizeOf(other) < sizeOf(one) ? other : one),
    undefined,
  );
  return innermost !== undefined && innermost.count > 0;
}

/** How many names two paths begin with in common, after `src/` and `test/`: a test file lies where its source does. */
function nearness(source: string, test: string): number {
  const [one, other] = [source, test].map((path) =>
    path
      .replace(/\.(test\.)?ts$/, '')
      .split('/')
      .slice(1),
  ) as [string[], string[]];
  return one.findIndex((name, index) => name !== other[index]) >>> 0;
}

/** Numbers from 0 to 1 by mulberry32, the same for a seed. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const sources = positionals.flatMap((named) => globSync(named.endsWith('.ts') ? named : `${named}/**/*.ts`, { cwd: root })).sort();
const random = seeded(Number(values.seed));
const all = sources.flatMap((source) => {
  const text = readFileSync(join(root, source), 'utf8');
  return changesOf(text).map((change) => ({ source, text, change, order: random() }));
});
const chosen = all.sort((one, other) => one.order - other.order).slice(0, Number(values.count));
const tests = [...new Set(sources.map((source) => `test/${source.split('/')[1]}`))]
  .flatMap((folder) => globSync(`${values.tests ?? folder}/**/*.test.ts`, { cwd: root }))
  .filter((file) => !startsPrograms(file));

console.log(`${all.length} changes are possible; ${chosen.length} are made. Running ${tests.length} test files as they are ...`);
const covered = new Map<string, { coverage: Coverage; ms: number }>();
for (const test of tests) {
  const found = await coverageOf(test);
  if (found === undefined) console.log(`${test} does not pass in memory alone and is left out.`);
  else covered.set(test, found);
}

const lineOf = (text: string, offset: number) => text.slice(0, offset).split('\n').length;

/** The test files that execute the place of a change, the nearest first, then the quickest. */
const testsOf = (source: string, { start }: Change): string[] =>
  [...covered]
    .filter(([, { coverage }]) => isExecuted(coverage.get(source) ?? [], start))
    .sort(([one, a], [other, b]) => nearness(source, other) - nearness(source, one) || a.ms - b.ms)
    .map(([test]) => test)
    .slice(0, Number(values.most));

let found = 0;
for (const { source, text, change } of chosen) {
  writeFileSync(join(copy, source), text.slice(0, change.start) + change.text + text.slice(change.end));
  let by: string | undefined;
  for (const test of testsOf(source, change)) {
    if (await passes(test)) continue;
    by = test;
    break;
  }
  writeFileSync(join(copy, source), text);
  if (by !== undefined) found += 1;
  const line = text.split('\n')[lineOf(text, change.start) - 1]!.trim();
  console.log(`${by === undefined ? 'SURVIVES' : 'found   '} ${source}:${lineOf(text, change.start)} ${change.kind}: ${line}`);
}
rmSync(copy, { recursive: true });
console.log(`${found} of ${chosen.length} changes were found: ${((100 * found) / chosen.length).toFixed(1)} %.`);
