import { join } from 'node:path';

import { packetOfBytes, searched } from '../bodies.ts';
import { requireGood } from '../rounds.ts';
import { connections, headers, jsonHeaders, type Run } from '../run.ts';

const megabyte = 1024 * 1024;

/** The memory growth after many reads of a large tenant, and after many creates. */
export async function memory(run: Run): Promise<void> {
  await reading(run);
  await creating(run);
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
    for (let time = 0; time < 20; time += 1) {
      const answer = await fetch(`${service.url}/api/v1${path}`, { headers });
      if (answer.status !== 200) throw new Error(`${path}: ${answer.status}`);
      await answer.arrayBuffer();
    }
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

/** The heap that a burst of creates may retain, in MB: full caches, and rounding. */
const heapAllowance = 5;

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
    target: { better: 'less', required: heapAllowance },
  });
}
