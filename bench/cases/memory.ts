import { request } from 'node:http';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { mcpRequest } from '../../test/support/mcp.ts';
import { packetOfBytes, searched } from '../bodies.ts';
import { requireGood } from '../rounds.ts';
import { connections, jsonHeaders, type MeasuredService, type Run } from '../run.ts';
import { Tenant } from '../tenant.ts';

const megabyte = 1024 * 1024;

/** The memory growth after many reads of a large tenant, after many creates, and with many waiting requests. */
export async function memory(run: Run): Promise<void> {
  await reading(run);
  await creating(run);
  await waiting(run);
}

async function reading(run: Run): Promise<void> {
  const { packets } = run.options;
  const service = await run.startService(`sqlite://${await run.seeded(packets)}`);
  const paths = [
    '/packets',
    '/packets?limit=200&view=full',
    `/packets?limit=200&offset=${Math.floor(packets / 2)}`,
    '/packets?priority=high',
    `/packets/search?q=${searched.common}`,
    `/packets/search?q=${searched.rare}`,
  ];
  const before = await service.program.call('memory', null);
  for (const path of paths) {
    for (let time = 0; time < 20; time += 1) await new Tenant(service.url).get(`/api/v1${path}`);
  }
  const after = await service.program.call('memory', null);
  await service.stop();
  run.report({
    name: `RSS after lists and searches of ${packets.toLocaleString('en-US')}, rise in MB`,
    against: `before: ${Math.round(before.rss / megabyte)} MB`,
    value: (after.rss - before.rss) / megabyte,
    target: { better: 'less', required: 100 },
  });
}

/** The most that the heap may rise by a burst of creates, in MB: full caches, and rounding. */
const maxHeapRiseMb = 5;

async function creating(run: Run): Promise<void> {
  const service = await run.startService(`sqlite://${join(run.folder, 'memory.db')}`);
  const create = { method: 'POST', path: '/api/v1/packets', headers: jsonHeaders, body: packetOfBytes(2048) } as const;
  const burst = async () =>
    requireGood(await run.load({ url: service.url, connections, requests: Array.from({ length: 10_000 }, () => create) }));
  await burst();
  const before = await service.program.call('memory', null);
  await burst();
  const after = await service.program.call('memory', null);
  await service.stop();
  run.report({
    name: 'heap after 10,000 more creates, rise in MB',
    against: `before: ${(before.heapUsed / megabyte).toFixed(1)} MB heap, ${Math.round(before.rss / megabyte)} MB RSS; RSS rose by ${Math.round((after.rss - before.rss) / megabyte)} MB`,
    value: (after.heapUsed - before.heapUsed) / megabyte,
    target: { better: 'less', required: maxHeapRiseMb },
  });
}

/** How many requests wait at once, each on its own connection. */
const waits = 2_000;

/** How long they have to arrive, and to end, in milliseconds. */
const settleMs = 3_000;

/** The heap of one waiting request: `claim-next`, the same with the bytes of a call by MCP, and the call by MCP. */
async function waiting(run: Run): Promise<void> {
  const work = { agent_id: 'resolver', wait_seconds: 60 };
  const called = mcpRequest('tools/call', { name: 'claim_next', arguments: { wait_seconds: 60 } });
  const bytes = JSON.stringify(called.body);
  const padded = { ...called.headers, 'x-padding': 'x'.repeat(Math.max(0, bytes.length - JSON.stringify(work).length)) };
  for (const [name, path, more, body] of [
    ['claim-next', '/api/v1/packets/claim-next', {}, JSON.stringify(work)],
    ['claim-next with the bytes of a call by MCP', '/api/v1/packets/claim-next', padded, JSON.stringify(work)],
    ['claim_next by MCP', '/mcp', called.headers, bytes],
  ] as const) {
    const service = await run.startService('sqlite::memory:', 'server', { SERVICE_CONNECTIONS_BUSINESS: String(waits) });
    // The first call loads what serves it.
    await heldBy(service, { path, headers: more, body }, 10);
    const held = await heldBy(service, { path, headers: more, body }, waits);
    await service.stop();
    run.report({ name: `heap of a waiting request: ${name}, KB`, against: `${waits} of them`, value: held / 1024 });
  }
}

interface Waiting {
  path: string;
  headers: Readonly<Record<string, string>>;
  body: string;
}

/** The heap of each of `count` requests that wait. */
async function heldBy({ url, program }: MeasuredService, { path, headers: more, body }: Waiting, count: number): Promise<number> {
  const before = await program.call('memory', null);
  let answered = 0;
  const open = Array.from({ length: count }, () => {
    const sent = request(`${url}${path}`, { method: 'POST', agent: false, headers: { ...jsonHeaders, ...more } });
    sent.on('response', () => {
      answered += 1;
    });
    // Every request is given up below.
    sent.on('error', () => undefined);
    sent.end(body);
    return sent;
  });
  await setTimeout(settleMs);
  const after = await program.call('memory', null);
  if (answered > 0) throw new Error(`${path} answered instead of waiting.`);
  for (const sent of open) sent.destroy();
  await setTimeout(settleMs);
  return (after.heapUsed - before.heapUsed) / count;
}
