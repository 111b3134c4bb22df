import { join } from 'node:path';

import { packetOfBytes } from '../bodies.ts';
import type { HookTasks } from '../hooks.ts';
import type { HostileReceiverTasks } from '../hostile-receivers.ts';
import { startProgram } from '../programs.ts';
import { requireGood } from '../rounds.ts';
import { headers, jsonHeaders, type MeasuredService, type Run } from '../run.ts';

/** The webhooks of the hostile tenant, and the packets that it creates per second. */
const hooksOfHostile = 20;
const createsOfHostile = 2;

const body = packetOfBytes(2048);
const secret = 'a-secret-for-the-benchmark';

async function post(url: string, body: unknown, key?: string): Promise<{ id: string; key: string }> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { ...jsonHeaders, ...(key === undefined ? {} : { 'x-api-key': key }) },
    body: JSON.stringify(body),
  });
  if (answer.status !== 201) throw new Error(`${url}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as { id: string; key: string };
}

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
  const api = `${service.url}/api/v1`;
  const hooks = startProgram<HookTasks>('./hooks.ts', { place: 'load' });
  // Its receiver closes each connection, so that each delivery looks its name up.
  const { receiver, url } = await hooks.call('listenByName', null);
  await post(`${api}/hooks`, { url, secret, events: ['packet.created'] });
  const { id } = await post(`${api}/packets`, JSON.parse(body));
  const seconds = Math.max(4, run.seconds);
  const get = [{ method: 'GET', path: `/api/v1/packets/${id}`, headers }] as const;
  const measure = async () => {
    const gets = requireGood(await run.load({ url: service.url, connections: 20, requests: get, seconds, rate: 200 }));
    const { sent } = await hooks.call('pace', { url: service.url, headers: jsonHeaders, body, rate: 50, seconds, receiver });
    return { gets: gets.p99, deliveries: sent.toSorted((a, b) => a - b)[Math.floor(sent.length * 0.99)]! };
  };
  const tenant = await post(`${api}/tenants`, { name: 'Hostile', tier: 'business' });
  const { key } = await post(`${api}/keys`, { name: 'hostile', tenant_id: tenant.id });
  for (let index = 0; index < hooksOfHostile; index += 1)
    await post(`${api}/hooks`, { url: urlOf(index), secret, events: ['packet.created'] }, key);
  await measure();
  const alone: Awaited<ReturnType<typeof measure>>[] = [];
  const together: typeof alone = [];
  const failures: unknown[] = [];
  const create = () => void post(`${api}/packets`, JSON.parse(body), key).catch((error: unknown) => failures.push(error));
  for (let round = 0; round < run.rounds; round += 1) {
    alone.push(await measure());
    const timer = setInterval(create, 1000 / createsOfHostile);
    together.push(await measure());
    clearInterval(timer);
  }
  if (failures.length > 0) throw failures[0];
  for (const what of ['gets', 'deliveries'] as const) {
    // The least, because other load on the machine can only raise it.
    const [quiet, loud] = [alone, together].map((rounds) => Math.min(...rounds.map((round) => round[what]))) as [number, number];
    run.report({
      name: `p99 of ${what} beside webhooks with ${name}`,
      p99: loud,
      against: `alone: p99 ${quiet.toFixed(2)} ms`,
      value: loud / quiet,
      target: { better: 'less', required: 2, stretch: 1.3 },
    });
  }
  await hooks.stop();
}
