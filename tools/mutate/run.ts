import { type ChildProcess, fork } from 'node:child_process';
import { cpSync, globSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { replacesParts, runsAlone } from '../../scripts/test-files.ts';
import { type Change, changesOf, withSwitches } from './changes.ts';
import type { Reply, Request } from './worker.ts';

/**
 * Makes small wrong changes to the code and tells which of them no test finds: `node tools/mutate/run.ts src/handoff/rules ...`, by
 * hand. It makes `--count N` changes in each folder or file, always the same for one `--seed N`; `FILE:LINE` means all of a line.
 *
 * All changes are written at once into a copy of the checkout, behind switches (`withSwitches`), and one process after the other
 * loads the tests, on SQLite in memory. Each test runs once, which tells the changes whose places it reaches and its processor time.
 * Then each change runs the tests that reach it, the nearest and quickest first, until one fails, for at most `--seconds N` of
 * processor time, and that test must pass without the change. A change in what is computed once, at the start, is made in a new
 * process. `--minutes N` ends the run early: the changes made until then are a sample too. `--tests FOLDER` takes only its tests.
 *
 * Tests that start programs or measure their process are left out.
 *
 * The first 29 changes of seed 1 in `fallback/rules` and `fallback/providers`: 20 found, one without effect, and eight found by tests
 * since. The first 15 in the contracts of the handoff service, by their own tests: 11 found, one without effect, two found since.
 */
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    count: { type: 'string', default: '60' },
    seed: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '30' },
    minutes: { type: 'string', default: '600' },
    tests: { type: 'string', multiple: true },
  },
});

const root = fileURLToPath(new URL('../../', import.meta.url));
const begun = performance.now();

/** A copy of the checkout, in which files are changed. */
const copy = mkdtempSync(join(tmpdir(), 'baton-mutate-'));
for (const name of readdirSync(root).filter((one) => !['.git', 'node_modules', 'dist', 'data'].includes(one)))
  cpSync(join(root, name), join(copy, name), { recursive: true, filter: (path) => !/node_modules|\.venv/.test(path) });
symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));

/** A process that runs tests; it starts again after one that hangs or that a change has spoilt. */
class Runner {
  #child: ChildProcess | undefined;

  /** The answer to a request; undefined if it takes longer than `limitMs` by the clock, or if the process ends. */
  async ask(request: Request, limitMs: number): Promise<Reply | undefined> {
    this.#child ??= this.#start();
    const child = this.#child;
    const reply = await new Promise<Reply | undefined>((resolve) => {
      const late = setTimeout(resolve, limitMs, undefined);
      const settle = (answer?: unknown) => {
        clearTimeout(late);
        child.removeAllListeners();
        resolve(answer as Reply | undefined);
      };
      child.once('message', settle).once('exit', () => settle());
      child.send(request);
    });
    if (reply === undefined) this.stop();
    return reply;
  }

  stop(): void {
    this.#child?.kill('SIGKILL');
    this.#child = undefined;
  }

  #start(): ChildProcess {
    return fork(join(copy, 'tools/mutate/worker.ts'), {
      cwd: copy,
      env: { ...process.env, BATON_TEST_STORE: 'memory', NODE_COMPILE_CACHE: join(copy, '.cache') },
      execArgv: ['--import', join(copy, 'tools/mutate/switches.ts')],
      serialization: 'advanced',
      stdio: 'ignore',
    });
  }
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

interface Chosen extends Change {
  readonly id: number;
  readonly area: string;
  readonly source: string;
  readonly line: number;
  /** The text of the line, as it is. */
  readonly shown: string;
}

const lineOf = (text: string, offset: number) => text.slice(0, offset).split('\n').length;

/** The changes to make in what an argument names, in the order in which they are made. */
function chosenIn(area: string): Omit<Chosen, 'id'>[] {
  const [named = '', line] = area.split(':');
  const random = seeded(Number(values.seed));
  const all = globSync(named.endsWith('.ts') ? named : `${named}/**/*.ts`, { cwd: root })
    .sort()
    .flatMap((source) => {
      const text = readFileSync(join(root, source), 'utf8');
      const lines = text.split('\n');
      return changesOf(text).map((change) => {
        const line = lineOf(text, change.at);
        return { ...change, area, source, line, shown: lines[line - 1]!.trim(), order: random() };
      });
    });
  if (line !== undefined) return all.filter((change) => change.line === Number(line));
  console.log(`${area}: ${all.length} changes are possible.`);
  return all.sort((one, other) => one.order - other.order).slice(0, Number(values.count));
}

const perArea = positionals.map(chosenIn);
/** One of each area in turn, so that a run that ends early has made as many in each. */
const chosen: Chosen[] = Array.from({ length: Math.max(...perArea.map(({ length }) => length)) }, (_, index) =>
  perArea.flatMap((changes) => changes[index] ?? []),
)
  .flat()
  .map((change, index) => ({ ...change, id: index + 1 }));

for (const [source, changes] of Map.groupBy(chosen, (change) => change.source)) {
  const path = join(copy, source);
  writeFileSync(path, withSwitches(readFileSync(path, 'utf8'), changes));
}

/** A test that passes as the code is. */
interface Known {
  readonly file: string;
  readonly index: number;
  readonly title: string;
  /** Its processor time, and the time that it took by the clock. */
  readonly ms: number;
  readonly clockMs: number;
  readonly reached: ReadonlySet<number>;
  readonly runner: Runner;
}

const folders = values.tests ?? [...new Set(chosen.map(({ source }) => `test/${source.split('/')[1]}`))];
const files = folders
  .flatMap((folder) => globSync(folder.endsWith('.ts') ? folder : `${folder}/**/*.test.ts`, { cwd: root }))
  .filter((file) => !runsAlone(join(root, file)));

/** A test may take as long as it did, many times over: the machine has other work. */
const limitOf = ({ clockMs }: Known) => 15_000 + 10 * clockMs;

const tests: Known[] = [];
/** The changes whose places are reached while modules are loaded. */
const atStart = new Set<number>();

/** Runs each test of some files once. */
async function runOnce(of: readonly string[]): Promise<void> {
  const runner = new Runner();
  for (const file of of) {
    const loaded = await runner.ask({ change: 0, file }, 120_000);
    if (loaded?.titles === undefined) console.log(`Left out, as it does not load: ${file}: ${loaded?.error?.split('\n')[0] ?? 'hangs'}`);
    const { titles = [], reached = [] } = loaded ?? {};
    for (const id of reached) atStart.add(id);
    for (const [index, title] of titles.entries()) {
      const started = performance.now();
      const reply = await runner.ask({ change: 0, file, index }, 120_000);
      const clockMs = performance.now() - started;
      if (reply === undefined || reply.error !== undefined)
        console.log(`Left out, as it fails by itself: ${file} ${title}: ${reply?.error?.split('\n')[0] ?? 'hangs'}`);
      else tests.push({ file, index, title, ms: reply.ms, clockMs, reached: new Set(reply.reached), runner });
    }
  }
}

// Once, at the beginning: the checkout may change during the run.
const [replacing, others] = [true, false].map((is) => files.filter((file) => replacesParts(join(root, file)) === is));
console.log(`Running the tests of ${files.length} files as they are ...`);
for (const group of [others!, replacing!]) await runOnce(group);
const totalMs = tests.reduce((sum, { ms }) => sum + ms, 0);
console.log(`${tests.length} tests took ${(totalMs / 1000).toFixed(0)} s of processor time.`);

/** How near a test file lies to a source: by its folders, and by the words that their names have in common. */
function nearness(source: string, file: string): number {
  const words = (path: string) =>
    basename(path)
      .replace(/\..*$/, '')
      .split('-')
      .map((word) => word.replace(/s$/, ''));
  const common = words(source).filter((word) => words(file).includes(word)).length;
  return common + (file.split('/')[2] === source.split('/')[2] ? 1 : 0);
}

/** The tests in the order in which they look for a change. */
const ordered = (of: readonly Known[], { source }: Chosen): Known[] =>
  of.toSorted((one, other) => nearness(source, other.file) - nearness(source, one.file) || one.ms - other.ms);

/** Whether a test passes without any change in the process as it is. */
async function passes(test: Known): Promise<boolean> {
  const { file, index, runner } = test;
  const reply = await runner.ask({ file, index, change: 0 }, limitOf(test));
  return reply !== undefined && reply.error === undefined;
}

/** What a test says of a change: that it fails, with its error; or whether it reached the place. */
async function verdict(test: Known, change: Chosen): Promise<{ error?: string; reached: boolean; ms: number }> {
  const { file, index, runner } = test;
  const request = { file, index, change: change.id };
  const reply = await runner.ask(request, limitOf(test));
  if (reply === undefined) return { error: 'hangs or ends the process', reached: true, ms: 0 };
  const { error, ms } = reply;
  const reached = reply.reached.includes(change.id);
  if (error === undefined) return { reached, ms };
  if (await passes(test)) return { error, reached, ms };
  // What failed may be what an earlier change has left behind, or a test that can't be repeated.
  runner.stop();
  const again = await runner.ask(request, limitOf(test));
  runner.stop();
  return again !== undefined && again.error === undefined ? { reached, ms } : { error: again?.error ?? 'hangs', reached: true, ms };
}

interface Finding {
  readonly by?: Known;
  readonly error?: string;
  readonly note?: string;
}

/** Looks for a change in running processes. */
async function findRunning(change: Chosen, reaching: readonly Known[], budgetMs: number): Promise<Finding & { wasReached: boolean }> {
  let used = 0;
  let wasReached = false;
  for (const [count, test] of reaching.entries()) {
    if (used > budgetMs) return { note: `${count} of ${reaching.length} tests`, wasReached };
    const { error, reached, ms } = await verdict(test, change);
    used += ms;
    wasReached ||= reached;
    if (error !== undefined) return { by: test, error, wasReached };
  }
  return { note: `${reaching.length} tests`, wasReached };
}

/** Looks for a change in processes that start with it. */
async function findStarting(change: Chosen, candidates: readonly Known[], budgetMs: number): Promise<Finding> {
  let used = 0;
  const runner = new Runner();
  const loaded = new Set<string>();
  const { id } = change;
  for (const [count, test] of candidates.entries()) {
    const { file, index } = test;
    if (used > budgetMs) {
      runner.stop();
      return { note: `at the start, ${count} of ${candidates.length} tests` };
    }
    if (!loaded.has(file)) {
      loaded.add(file);
      const reply = await runner.ask({ file, change: id }, limitOf(test));
      used += reply?.ms ?? 0;
      if (reply?.titles === undefined) {
        runner.stop();
        return { by: test, error: reply?.error ?? 'hangs or ends the process' };
      }
    }
    const reply = await runner.ask({ file, index, change: id }, limitOf(test));
    used += reply?.ms ?? 0;
    if (reply !== undefined && reply.error === undefined) continue;
    runner.stop();
    const asIs = await runner.ask({ file, index, change: 0 }, limitOf(test));
    runner.stop();
    loaded.clear();
    if (asIs !== undefined && asIs.error === undefined) return { by: test, error: reply?.error ?? 'hangs or ends the process' };
  }
  runner.stop();
  return { note: `at the start, ${candidates.length} tests` };
}

/** Looks for a change. */
async function find(change: Chosen): Promise<Finding> {
  const budgetMs = 1000 * Number(values.seconds);
  const reaching = ordered(
    tests.filter(({ reached }) => reached.has(change.id)),
    change,
  );
  const running = await findRunning(change, reaching, budgetMs);
  if (running.by !== undefined || running.wasReached || (reaching.length === 0 && !atStart.has(change.id))) return running;
  const [nearest] = reaching;
  const others = ordered(
    tests.filter((test) => test !== nearest),
    change,
  );
  return findStarting(change, nearest === undefined ? others : [nearest, ...others], budgetMs);
}

const counts = new Map(positionals.map((area) => [area, { made: 0, found: 0 }]));
for (const change of chosen) {
  if (performance.now() - begun > 60_000 * Number(values.minutes)) break;
  const { by, error, note } = await find(change);
  const count = counts.get(change.area)!;
  count.made += 1;
  if (by !== undefined) count.found += 1;
  const result = by === undefined ? `(${note})` : `\n    ${by.file}: ${by.title}: ${error?.split('\n')[0]}`;
  console.log(`${by === undefined ? 'SURVIVES' : 'found   '} ${change.source}:${change.line} ${change.kind}: ${change.shown} ${result}`);
}
rmSync(copy, { recursive: true });
for (const [area, { made, found }] of counts)
  console.log(`${area}: ${found} of ${made} changes were found: ${((100 * found) / made).toFixed(1)} %.`);
process.exit();
