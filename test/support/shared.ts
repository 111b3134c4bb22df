import { after, type TestContext } from 'node:test';

import { startOfTests, startService, type TestService } from './service.ts';
import type { TestStore } from './store.ts';

/** A service that tests share, as one of its tenants sees it. */
export interface SharedService extends TestService {
  /** An admin key of the tenant. */
  readonly key: string;
  /** Lets the service listen, and its jobs run, from the first call on; resolves with the address. */
  listen(): Promise<string>;
}

interface Running {
  readonly service: TestService;
  listening?: Promise<string>;
}

const stops: (() => unknown)[] = [];

after(async () => {
  for (const stop of stops) await stop();
});

/** The scope of the services that the tests of a file share: they stop after the last test. */
export const endOfFile: Pick<TestContext, 'after'> = { after: (stop: unknown) => void stops.push(stop as () => unknown) };

/** The running services, by store and settings. */
const services = new Map<string, Promise<Running>>();

/**
 * Creates a tenant in a service that the tests of a file share on a store, and returns the service as that tenant sees it:
 * calls have an admin key of the tenant unless they name another, the clock is at its start, and the log is empty. Tests
 * with the same settings share a service, so a job that one of them runs, such as the sweeper, affects the tenants of all.
 * A test that needs a database without other tenants, or that affects all tenants (metrics, a stop), starts its own service.
 */
export async function shareService(store: TestStore, settings: Record<string, string> = {}): Promise<SharedService> {
  const name = JSON.stringify([store.name, settings]);
  let starting = services.get(name);
  if (starting === undefined) {
    starting = startService(endOfFile, { store, settings }).then((service) => ({ service }));
    services.set(name, starting);
  }
  const running = await starting;
  const { service } = running;
  service.clock.set(startOfTests);
  const tenant = await service.call('POST', '/tenants', { body: { name: 'default', tier: 'business' } });
  const { body } = await service.call('POST', '/keys', { body: { name: 'first admin key', tenant_id: tenant.body.id, admin: true } });
  service.logs.length = 0;
  return {
    ...service,
    key: body.key,
    call: (method, path, options) => service.call(method, path, { key: body.key, ...options }),
    listen: () => (running.listening ??= service.handoff.start()),
  };
}
