import type { TestContext } from 'node:test';

import { openHandoffDatabase } from './databases.ts';
import { type ServiceOptions, startService, TestClock, type TestService } from './service.ts';

/** An empty database, of PostgreSQL unless another one is given, and what starts instances on it with one clock. It is dropped after they have stopped. */
export async function openInstances(t: Pick<TestContext, 'after'>, open: typeof openHandoffDatabase = openHandoffDatabase) {
  const { url, drop } = await open();
  const clock = new TestClock();
  const stops: (() => Promise<void>)[] = [];
  const scope = { after: (stop: unknown) => void stops.push(stop as () => Promise<void>) };
  t.after(async () => {
    await Promise.all(stops.map((stop) => stop()));
    await drop();
  });
  const start = (settings: Record<string, string> = {}, dependencies: ServiceOptions['dependencies'] = {}): Promise<TestService> =>
    startService(scope, { databaseUrl: url, clock, settings, dependencies });
  return { url, clock, start };
}
