import { registerHooks } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

import { type Collected, collect } from './node-test.ts';
import { switches } from './switches.ts';

/**
 * A process that runs single tests with a change or without one, as `run.ts` asks for it. It imports each test file once, so that a
 * test costs what it does itself.
 */

/** Loads a test file with a change (0 for none), and returns the titles of its tests; or runs one of them. */
export type Request = { readonly change: number; readonly file: string; readonly index?: number };

/** `reached`: the changes whose places were reached; `error`: what failed. */
export interface Reply {
  readonly error?: string;
  readonly reached: readonly number[];
  readonly titles?: readonly string[];
  /** The processor time, in milliseconds. */
  readonly ms: number;
}

registerHooks({
  resolve: (name, context, next) =>
    name === 'node:test' && context.parentURL?.includes('/test/')
      ? { url: new URL('./node-test.ts', import.meta.url).href, shortCircuit: true }
      : next(name, context),
});

const loaded = new Map<string, readonly Collected[]>();

/** Ends what runs with an error that nothing caught. */
let fail: (error: unknown) => void = () => undefined;
process.on('uncaughtException', (error) => fail(error));
process.on('unhandledRejection', (error) => fail(error));

async function load(file: string): Promise<readonly Collected[]> {
  const known = loaded.get(file);
  if (known !== undefined) return known;
  const tests = await collect(() => import(pathToFileURL(resolve(file)).href));
  loaded.set(file, tests);
  return tests;
}

async function answer({ change, file, index }: Request): Promise<Reply> {
  switches.fill(0);
  switches[0] = change;
  const before = process.cpuUsage();
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  failed.catch(() => undefined);
  let outcome: Pick<Reply, 'error' | 'titles'>;
  try {
    const tests = await Promise.race([load(file), failed]);
    if (index !== undefined) await Promise.race([tests[index]!.run(), failed]);
    outcome = index === undefined ? { titles: tests.map(({ title }) => title) } : {};
  } catch (error) {
    outcome = { error: String(error) };
  }
  const reached = [...switches.keys()].filter((id) => id > 0 && switches[id] === 1);
  switches[0] = 0;
  const { user, system } = process.cpuUsage(before);
  return { ...outcome, reached, ms: (user + system) / 1000 };
}

process.on('message', (request: Request) => {
  answer(request).then(
    (reply) => process.send!(reply),
    () => process.exit(1),
  );
});
process.on('disconnect', () => process.exit());
