import { join } from 'node:path';

import { packetOfBytes } from '../bodies.ts';
import { type FaceAttack, faceAttacks } from '../hostile-faces.ts';
import { requireGood } from '../rounds.ts';
import { headers, jsonHeaders, type MeasuredService, type Run, withPostgres } from '../run.ts';

/** Requests of the other tenant per second. */
const othersPerSecond = 50;

const megabyte = 1024 * 1024;

/** What one tenant can do by MCP, A2A, answer links and channels, and how long others then wait, on both databases. */
export async function hostileFaces(run: Run): Promise<void> {
  for (const attack of faceAttacks) await beside(run, `sqlite://${join(run.folder, 'faces.db')}`, 'SQLite', attack);
  await withPostgres(run, 0, async (url) => {
    for (const attack of faceAttacks) await beside(run, url, 'PostgreSQL', attack);
  });
}

/** The p99 of others while an attack lasts, and the memory of a service of its own. */
export async function beside(run: Run, databaseUrl: string, database: string, { name, prepare }: FaceAttack): Promise<void> {
  const service = await run.startService(databaseUrl, 'anywhere', { SERVICE_WEBHOOK_ALLOW: '127.0.0.1' });
  try {
    const created = await fetch(`${service.url}/api/v1/packets`, { method: 'POST', headers: jsonHeaders, body: packetOfBytes(2048) });
    if (created.status !== 201) throw new Error(`POST /packets: ${created.status}`);
    const strike = await prepare(service.url);
    const { rss: before } = await service.program.call('memory', null);
    await service.program.call('watch', null);
    let isOver = false;
    const begun = performance.now();
    let seconds = 0;
    const striking = strike().finally(() => {
      isOver = true;
      seconds = (performance.now() - begun) / 1000;
    });
    striking.catch(() => undefined);
    let worst = await others(run, service);
    while (!isOver) {
      const next = await others(run, service);
      if (next.p99 > worst.p99) worst = next;
    }
    await striking;
    const { peak, longest } = await service.program.call('watched', null);
    run.say(`${database}: ${name}: ${seconds.toFixed(1)} s, in turns of at most ${longest.toFixed(0)} ms of processor time.`);
    const { perSecond, p50, p99 } = worst;
    run.report({
      name: `${database}: p99 of others beside ${name}, ms`,
      perSecond,
      p50,
      p99,
      value: p99,
      target: { better: 'less', required: 250 },
    });
    run.report({
      name: `${database}: memory beside ${name}, rise in MB`,
      value: (peak - before) / megabyte,
      target: { better: 'less', required: 400 },
    });
  } finally {
    await service.stop();
  }
}

async function others(run: Run, { url }: MeasuredService) {
  const requests = [{ method: 'GET' as const, path: '/api/v1/packets?limit=1', headers }];
  return requireGood(await run.load({ url, connections: 20, requests, seconds: 1, rate: othersPerSecond }));
}
