import { setImmediate as turn } from 'node:timers/promises';

/**
 * What test files import instead of `node:test` in `worker.ts`: it collects the tests, each of which can then be run alone and as
 * often as wanted. Suites are prepared once and never ended, so that their tests need not start a service again.
 */
type Body = (t: unknown) => unknown;
type Rest = readonly (Body | { readonly skip?: unknown } | undefined)[];

interface Suite {
  readonly title: string;
  readonly parent: Suite | undefined;
  readonly befores: Body[];
  ready?: Promise<void>;
}

/** A test of a file. */
export interface Collected {
  readonly title: string;
  run(): Promise<void>;
}

let suite: Suite = { title: '', parent: undefined, befores: [] };
let collected: Collected[] = [];

/** Returns the tests of a file, which `load` imports. */
export async function collect(load: () => Promise<unknown>): Promise<readonly Collected[]> {
  suite = { title: '', parent: undefined, befores: [] };
  collected = [];
  await load();
  return collected;
}

const bodyIn = (rest: Rest) => rest.find((one) => typeof one === 'function');
const isSkipped = (rest: Rest) => rest.some((one) => typeof one === 'object' && one.skip !== undefined && one.skip !== false);

/** Runs what comes before the tests of a suite, once. */
function ready(of: Suite | undefined): Promise<void> {
  if (of === undefined) return Promise.resolve();
  const prepare = async () => {
    await ready(of.parent);
    for (const before of of.befores) await before({ after: () => undefined });
  };
  of.ready ??= prepare();
  return of.ready;
}

/** The mocks of a test: its own tracker, of the class that `node:test` keeps to itself. */
const { mock: ofNode } = process.getBuiltinModule('node:test');
const newTracker = () => new (ofNode.constructor as new () => typeof ofNode)();

async function runBody(fullName: string, body: Body): Promise<void> {
  const afters: Body[] = [];
  const mock = newTracker();
  const t = {
    ...{ name: fullName, fullName, mock, signal: new AbortController().signal, diagnostic: () => undefined },
    after: (body: Body) => void afters.push(body),
    test: (name: string, ...rest: Rest) => runBody(`${fullName} > ${name}`, bodyIn(rest)!),
  };
  try {
    await body(t);
  } finally {
    for (const after of afters) await after(t);
    mock.reset();
    // What is rejected behind a test belongs to it.
    await turn();
  }
}

export function test(name: string, ...rest: Rest): void {
  const body = bodyIn(rest);
  if (body === undefined || isSkipped(rest)) return;
  const parent = suite;
  const title = `${parent.title}${name}`;
  collected.push({ title, run: () => ready(parent).then(() => runBody(title, body)) });
}

export function describe(name: string, ...rest: Rest): void {
  if (isSkipped(rest)) return;
  const parent = suite;
  suite = { title: `${parent.title}${name} > `, parent, befores: [] };
  bodyIn(rest)?.(undefined);
  suite = parent;
}

export const before = (body: Body): void => void suite.befores.push(body);
export const after = (): void => undefined;
