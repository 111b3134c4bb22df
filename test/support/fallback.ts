import type { TestContext } from 'node:test';

import { createFallback, type Dependencies, type Fallback } from '../../src/fallback/main.ts';
import { readFallbackSettings } from '../../src/fallback/settings.ts';
import { type CallOptions, inject, startOfTests, type TestAnswer, TestClock } from './service.ts';
import { endOfFile } from './shared.ts';
import { inMemory, type TestStore } from './store.ts';

/** A running fallback service without a socket, its clock, and a way to call it. */
export interface TestFallback {
  readonly fallback: Fallback;
  readonly clock: TestClock;
  /** As `--storage` spells it. */
  readonly storage: string;
  readonly call: (method: string, path: string, options?: Omit<CallOptions, 'key'>) => Promise<TestAnswer>;
  /** All log lines of the service. */
  readonly logs: string[];
}

export interface FallbackOptions {
  store?: TestStore;
  /** Existing storage, for a second instance or a second start. */
  storage?: string;
  clock?: TestClock;
  flags?: Parameters<typeof readFallbackSettings>[0]['flags'];
  /** Settings by the names of their variables. */
  environment?: Record<string, string>;
  dependencies?: Dependencies;
}

/** Starts a fallback service that ends with the test. */
export async function startFallback(t: Pick<TestContext, 'after'>, options: FallbackOptions = {}): Promise<TestFallback> {
  const { store = inMemory, clock = new TestClock(), environment = {}, dependencies = {} } = options;
  const opened = options.storage === undefined ? await store.open() : { url: options.storage, drop: async () => undefined };
  const logs: string[] = [];
  const flags = { host: '127.0.0.1', port: '0', storage: opened.url, ...options.flags };
  const fallback = await createFallback(readFallbackSettings({ flags, environment }), {
    clock: clock.read,
    logs: { write: (line) => void logs.push(line) },
    environment,
    ...dependencies,
  });
  t.after(async () => {
    await fallback.stop();
    await opened.drop();
  });
  return { fallback, clock, storage: opened.url, logs, call: (method, path, call) => inject(fallback, method, path, call) };
}

/** The shared services that run, one for each store. */
const shared = new Map<TestStore, Promise<TestFallback>>();

/**
 * The service that the tests of a file share on a store: without chains, with the clock at its start and an empty log. A
 * test that needs settings, a socket or a stop starts a service of its own.
 */
export async function shareFallback(store: TestStore = inMemory): Promise<TestFallback> {
  const starting = shared.get(store) ?? startFallback(endOfFile, { store });
  shared.set(store, starting);
  const service = await starting;
  service.clock.set(startOfTests);
  const { body: chains } = await service.call('GET', '/chains');
  for (const { id } of chains) await service.call('DELETE', `/chains/${id}`);
  service.logs.length = 0;
  return service;
}

/** A request for a chain of two providers and two rules, with changes. */
export function chainRequest(changes: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    name: 'production-chain',
    providers: [
      { name: 'gpt-4o', model_id: 'openai/gpt-4o', priority: 0 },
      { name: 'claude', model_id: 'anthropic/claude-sonnet-4-5', priority: 1 },
    ],
    fallback_rules: [
      { condition: 'rate_limit', action: 'retry', max_retries: 3 },
      { condition: 'timeout', action: 'failover' },
    ],
    ...changes,
  };
}

/** Creates a chain and returns it. */
// biome-ignore lint/suspicious/noExplicitAny: a test looks into chains of every shape.
export async function createChain(service: TestFallback, changes: Record<string, unknown> = {}): Promise<any> {
  const answer = await service.call('POST', '/chains', { body: chainRequest(changes) });
  if (answer.status !== 201) throw new Error(`The chain was not created: ${answer.status} ${answer.text}`);
  return answer.body;
}

/** Stores chains and the results of tests; returns the paths that read them. */
export async function fillChains(service: TestFallback): Promise<string[]> {
  const paths = ['/chains', '/chains?limit=1'];
  for (const name of ['production-chain', 'production-chain', 'café "quoted"\u2028']) {
    const { id } = await createChain(service, { name });
    const tested = await service.call('POST', `/chains/${id}/test`, { body: { prompt_count: 3, seed: 7 } });
    if (tested.status !== 201) throw new Error(`The test did not run: ${tested.status} ${tested.text}`);
    paths.push(`/chains/${id}`, `/test-results/${id}`, `/test-results/${tested.body.id}`);
  }
  return paths;
}

/** The answers to reads: status, version and text by path. */
export async function answersOf(service: TestFallback, paths: readonly string[]): Promise<Record<string, string>> {
  const answers: Record<string, string> = {};
  for (const path of paths) {
    const { status, headers, text } = await service.call('GET', path);
    answers[path] = `${status} ${headers.etag ?? ''} ${text}`;
  }
  return answers;
}
