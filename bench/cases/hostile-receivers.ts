import { join } from 'node:path';

import { packetOfBytes } from '../bodies.ts';
import type { HookTasks } from '../hooks.ts';
import type { HostileReceiverTasks } from '../hostile-receivers.ts';
import { startProgram } from '../programs.ts';
import { besides, requireGood } from '../rounds.ts';
import { headers, jsonHeaders, type MeasuredService, type Run } from '../run.ts';
import { Tenant } from '../tenant.ts';
import { quantile } from '../times.ts';

/** The webhooks of the hostile tenant, and the packets that it creates per second. */
const hooksOfHostile = 20;
const createsOfHostile = 2;

const body = packetOfBytes(2048);
const secret = 'a-secret-for-the-benchmark';

/** The effect of one tenant's webhooks on the gets and deliveries of others: names that are never answered, and endless answers. */
export async function hostileReceivers(run: Run): Promise<void> {
  const receivers = startProgram<HostileReceiverTasks>('./hostile-receivers.ts', { place: 'load' });
  const nameServer = await receivers.call('startNameServer', null);
  const kinds = {
    'names that are never answered': (index: number) => `http://silent${index}.bench:9/`,
    'endless interim responses': await flooding('interim'),
    'endless chunk extensions': await flooding('extension'),
  };
  async function flooding(kind: 'interim' | 'extension') {
    const urls: string[] = [];
    for (let index = 0; index < hooksOfHostile; index += 1) urls.push(await receivers.call('startFlood', kind));
    return (index: number) => urls[index]!;
  }
  for (const [name, urlOf] of Object.entries(kinds)) {
    const url = `sqlite://${join(run.folder, `${name.replaceAll(' ', '-')}.db`)}`;
    const allowed = `127.0.0.1,${Array.from({ length: hooksOfHostile }, (_, index) => `silent${index}.bench`).join(',')}`;
    const service = await run.startService(url, 'server', { SERVICE_WEBHOOK_ALLOW: allowed, BENCH_NAME_SERVER: nameServer });
    try {
      await beside(run, service, name, urlOf);
    } finally {
      await service.stop();
    }
  }
  await receivers.stop();
}

async function beside(run: Run, service: MeasuredService, name: string, urlOf: (index: number) => string): Promise<void> {
  const hooks = startProgram<HookTasks>('./hooks.ts', { place: 'load' });
  const own = new Tenant(service.url);
  // Its receiver closes each connection, so that each delivery looks its name up.
  const { receiver, url } = await hooks.call('listenByName', null);
  await own.post('/api/v1/hooks', { url, secret, events: ['packet.created'] });
  const { id } = await own.post('/api/v1/packets', JSON.parse(body));
  const hostile = await Tenant.create(service.url);
  for (let index = 0; index < hooksOfHostile; index += 1)
    await hostile.post('/api/v1/hooks', { url: urlOf(index), secret, events: ['packet.created'] });
  const seconds = Math.max(4, run.seconds);
  const get = [{ method: 'GET', path: `/api/v1/packets/${id}`, headers }] as const;
  const measure = async () => {
    const { p99 } = requireGood(await run.load({ url: service.url, connections: 20, requests: get, seconds, rate: 200 }));
    const { sent } = await hooks.call('pace', { url: service.url, headers: jsonHeaders, body, rate: 50, seconds, receiver });
    return {
      [`p99 of gets beside webhooks with ${name}`]: { p99 },
      [`p99 of deliveries beside webhooks with ${name}`]: { p99: quantile(sent, 0.99) },
    };
  };
  const failures: unknown[] = [];
  const create = () => void hostile.post('/api/v1/packets', JSON.parse(body)).catch((error: unknown) => failures.push(error));
  const start = () => {
    const timer = setInterval(create, 1000 / createsOfHostile);
    return async () => clearInterval(timer);
  };
  const figures = await besides(run.rounds, measure, start);
  if (failures.length > 0) throw failures[0];
  for (const figure of figures) run.report(figure);
  await hooks.stop();
}
