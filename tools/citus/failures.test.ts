import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { Instance } from '../../bench/soak/places.ts';
import { createExample } from '../../src/handoff/model/examples.ts';
import { freePort } from '../../src/kit/free-port.ts';
import { addWorkers, createClusterDatabase } from '../../test/support/citus.ts';
import { contentsOf, disagreements, looking, orphans } from '../../test/support/consistency.ts';
import { onServer, startCluster } from './cluster.ts';

const adminKey = 'an-admin-key-of-this-test';

const { hitl: _, ...body } = createExample;

/** A tenant, what it was answered, and how often it was told to come back, since the last `reset`. */
interface Tenant {
  readonly key: string;
  readonly number: number;
  readonly created: Map<string, string>;
  answered: number;
  refused: number;
}

/** Creates packets one after the other until the signal aborts; each is requested under one key until it is answered. */
async function write(url: string, tenant: Tenant, over: AbortSignal): Promise<void> {
  for (let index = 0; !over.aborted; index += 1) {
    const key = `key-${index}`;
    for (;;) {
      const headers = { 'x-api-key': tenant.key, 'content-type': 'application/json', 'idempotency-key': key };
      const answer = await fetch(`${url}/api/v1/packets`, { method: 'POST', headers, body: JSON.stringify(body) });
      const text = await answer.text();
      if (answer.status === 201) {
        tenant.created.set(key, JSON.parse(text).id);
        tenant.answered += 1;
        break;
      }
      assert.equal(answer.status, 503, text);
      tenant.refused += 1;
      await sleep(100);
    }
    await sleep(20);
  }
}

/** Starts the service on a cluster. */
async function startOn(t: TestContext, url: string): Promise<Instance> {
  const port = await freePort();
  const service = new Instance('handoff', port, ['bin/service-cli.js', 'serve'], {
    SERVICE_DATABASE_URL: url,
    SERVICE_ADMIN_KEY: adminKey,
    SERVICE_HOST: '127.0.0.1',
    SERVICE_PORT: String(port),
    SERVICE_LOG_LEVEL: 'error',
    SERVICE_LOG_FORMAT: 'json',
    SERVICE_RATE_LIMIT_PER_MINUTE: '10000000',
    SERVICE_HOURLY_QUOTA_BUSINESS: '1000000000',
  });
  await service.start();
  t.after(() => service.kill());
  return service;
}

async function createTenants(service: Instance, coordinator: string): Promise<Tenant[]> {
  const tenants: Tenant[] = [];
  const asAdmin = async (path: string, given: unknown) => {
    const headers = { 'x-api-key': adminKey, 'content-type': 'application/json' };
    const answer = await fetch(`${service.url}/api/v1${path}`, { method: 'POST', headers, body: JSON.stringify(given) });
    assert.equal(answer.status, 201, path);
    return (await answer.json()) as Record<string, string>;
  };
  for (let index = 0; index < 8; index += 1) {
    const { id } = await asAdmin('/tenants', { name: `tenant ${index}`, tier: 'business', handoffs_per_day: 1_000_000 });
    const { key } = await asAdmin('/keys', { name: 'writer', tenant_id: id });
    const [row] = await onServer(coordinator, 'failures', `select number::int from tenants where id = '${id}'`);
    tenants.push({ key: key!, number: row!.number as number, created: new Map(), answered: 0, refused: 0 });
  }
  return tenants;
}

/** In what the stored rows differ from what the tenants were answered, and from one another. */
const faultsOf = (url: string, tenants: readonly Tenant[]): Promise<string[]> =>
  looking(url, async (inspector) => {
    const sentences = await orphans(inspector);
    for (const { number, created } of tenants) {
      const contents = await contentsOf(inspector, number);
      sentences.push(...disagreements(contents));
      assert.deepEqual(contents.packets!.map(({ id }) => id).sort(), [...created.values()].sort());
      assert.deepEqual(
        contents.events!.map(({ position }) => position),
        contents.events!.map((_event, index) => index + 1),
      );
    }
    return sentences;
  });

test('Servers that are killed and shards that move lose nothing, double nothing, and concern only their tenants', {
  timeout: 580_000,
  // oxlint-disable-next-line baton/own-lines -- one story, whose steps build on one another.
}, async (t) => {
  const cluster = await startCluster();
  t.after(() => cluster.stop());
  const [coordinator, ...workers] = cluster.servers as [(typeof cluster.servers)[0], ...(typeof cluster.servers)[number][]];
  const [first, second] = workers.map(({ address }) => address) as [string, string];
  // All shards are on the first worker until the second one joins.
  const url = await createClusterDatabase(
    'failures',
    cluster.servers.map(({ address }) => address),
    [first],
  );
  const service = await startOn(t, url);
  const tenants = await createTenants(service, coordinator.address);
  const serverOf = async ({ number }: Tenant) => {
    const query = `select nodename || ':' || nodeport as address from citus_shards where shardid = get_shard_id_for_distribution_column('packets', ${number})`;
    return (await onServer(coordinator.address, 'failures', query))[0]!.address as string;
  };
  const reset = () => {
    for (const tenant of tenants) Object.assign(tenant, { answered: 0, refused: 0 });
  };
  const over = new AbortController();
  const writing = Promise.all(tenants.map((tenant) => write(service.url, tenant, over.signal)));
  let failure: unknown;
  writing.catch((error: unknown) => {
    failure = error;
  });
  /** Waits for what the writers do; their failure ends it. */
  const until = async (isSo: () => boolean) => {
    while (!isSo()) {
      if (failure !== undefined) throw failure;
      await sleep(50);
    }
  };
  /** Waits until each of the tenants has been answered since the last reset. */
  const answeredAgain = (some: readonly Tenant[], times = 3) => until(() => some.every(({ answered }) => answered >= times));
  await answeredAgain(tenants);

  reset();
  await addWorkers('failures', coordinator.address, [second]);
  await onServer(coordinator.address, 'failures', 'select rebalance_table_shards()');
  await answeredAgain(tenants);
  const refusedByMoves = tenants.reduce((sum, { refused }) => sum + refused, 0);
  t.diagnostic(
    `rebalancing: ${tenants.reduce((sum, { answered }) => sum + answered, 0)} creates answered, ${refusedByMoves} refused with 503`,
  );

  const addresses = await Promise.all(tenants.map(serverOf));
  const [mine, others] = [first, second].map((address) => tenants.filter((_tenant, index) => addresses[index] === address)) as [
    Tenant[],
    Tenant[],
  ];
  assert.ok(mine.length > 0 && others.length > 0, addresses.join());
  await workers[0]!.kill();
  // What had begun before ends first.
  await sleep(1000);
  reset();
  await answeredAgain(others, 10);
  await until(() => mine.every(({ refused }) => refused > 0));
  assert.deepEqual([others.reduce((sum, { refused }) => sum + refused, 0), mine.reduce((sum, { answered }) => sum + answered, 0)], [0, 0]);
  t.diagnostic(
    `a worker is down: ${others.reduce((sum, { answered }) => sum + answered, 0)} creates of other tenants answered, none refused`,
  );
  let since = performance.now();
  await workers[0]!.start();
  await answeredAgain(tenants);
  t.diagnostic(`the worker is back: all tenants answered after ${Math.round(performance.now() - since)} ms`);

  await coordinator.kill();
  await sleep(1000);
  reset();
  await until(() => tenants.every(({ refused }) => refused > 0));
  since = performance.now();
  await coordinator.start();
  await answeredAgain(tenants);
  t.diagnostic(`the coordinator is back: all tenants answered after ${Math.round(performance.now() - since)} ms`);

  over.abort();
  await writing;
  assert.deepEqual(await faultsOf(url, tenants), []);
  t.diagnostic(`stored = acknowledged = ${tenants.reduce((sum, { created }) => sum + created.size, 0)} packets`);
});
