import { after } from 'node:test';

import { startOfTests, startService, type TestService } from './service.ts';
import type { TestStore } from './stores.ts';

/** The services that run, one for each store. */
const services = new Map<TestStore, Promise<TestService>>();
const stops: (() => unknown)[] = [];

after(async () => {
  for (const stop of stops) await stop();
});

/**
 * Creates a tenant in a service that the tests of a file share on a store, and returns the service as that tenant sees it:
 * calls carry an admin key of the tenant unless they name another, the clock stands at its start and the log is empty.
 * A test that needs settings, a socket, a database without other tenants or what concerns all tenants (metrics, a stop)
 * starts a service of its own.
 */
export async function shareService(store: TestStore): Promise<TestService> {
  let starting = services.get(store);
  if (starting === undefined) {
    starting = startService({ after: (stop) => void stops.push(stop as () => unknown) }, { store });
    services.set(store, starting);
  }
  const service = await starting;
  service.clock.set(startOfTests);
  const tenant = await service.call('POST', '/tenants', { body: { name: 'default', tier: 'business' } });
  const { body } = await service.call('POST', '/keys', { body: { name: 'first admin key', tenant_id: tenant.body.id, admin: true } });
  service.logs.length = 0;
  return { ...service, call: (method, path, options) => service.call(method, path, { key: body.key, ...options }) };
}
