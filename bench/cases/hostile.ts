import { copyFileSync } from 'node:fs';
import { join } from 'node:path';

import { packetOfBytes, searched } from '../bodies.ts';
import { type Attack, attack, hostileSummaries, pipeline, pongs, replay } from '../hostile.ts';
import type { LoadRequest } from '../load.ts';
import { requireGood } from '../rounds.ts';
import { headers, jsonHeaders, type MeasuredService, type Run, withPostgres } from '../run.ts';
import type { LoadResult } from '../times.ts';
import { hostileFaces } from './hostile-faces.ts';
import { hostileReceivers } from './hostile-receivers.ts';

/** Requests per second of the other tenant, an easy load for both databases. */
const othersPerSecond: Record<string, number> = { gets: 200, lists: 20, searches: 50, creates: 100 };

/** Requests per second of the hostile tenant: the limit of the largest tier. */
const hostilePerSecond = 1000 / 60;

const megabyte = 1024 * 1024;

/** The effect of one hostile tenant on all others, on both databases. */
export async function hostile(run: Run): Promise<void> {
  const packets = run.options.quick ? 20_000 : 100_000;
  const path = join(run.folder, 'hostile.db');
  copyFileSync(await run.seeded(packets), path);
  await besideHostile(run, `sqlite://${path}`, 'SQLite');
  await withPostgres(run, run.options.quick ? 5_000 : 20_000, (url) => besideHostile(run, url, 'PostgreSQL'));
  await hostileFaces(run);
  await hostileReceivers(run);
}

async function besideHostile(run: Run, databaseUrl: string, database: string): Promise<void> {
  const service = await run.startService(databaseUrl, 'anywhere');
  const { key, firstEventId } = await makeHostile(service);
  const target = { url: service.url, key };
  const attacks: Record<string, () => Attack> = {
    'pipelining without a key': () => pipeline(service),
    'streams that resume and read nothing': () => replay(target, firstEventId),
    'pongs of WebSockets': () => pongs(target),
  };
  for (const [name, start] of Object.entries(attacks)) {
    const figure = { name: `${database}: p99 of gets beside ${name}`, requests: await gets(service), rate: othersPerSecond.gets! };
    await beside(run, service, figure, () => start().stop);
  }
  const others: Record<string, LoadRequest[]> = {
    gets: await gets(service),
    lists: [{ method: 'GET', path: '/api/v1/packets?tags=batch-7&source_agent=agent-7', headers }],
    searches: [{ method: 'GET', path: `/api/v1/packets/search?q=${searched.rare}`, headers }],
    creates: [{ method: 'POST', path: '/api/v1/packets', headers: jsonHeaders, body: packetOfBytes(2048) }],
  };
  let peak = 0;
  for (const [name, requests] of Object.entries(others)) {
    await beside(
      run,
      service,
      { name: `${database}: p99 of ${name} beside a hostile tenant`, requests, rate: othersPerSecond[name]! },
      () => {
        const attacking = attack(target, hostilePerSecond);
        return async () => {
          peak = Math.max(peak, (await service.program.call('memory', null)).rss);
          await attacking.stop();
        };
      },
    );
  }
  run.report({
    name: `${database}: memory beside a hostile tenant, in MB`,
    value: peak / megabyte,
    target: { better: 'less', required: 1000 },
  });
  await service.stop();
}

interface Others {
  /** The name of the figure. */
  name: string;
  requests: LoadRequest[];
  /** Requests per second. */
  rate: number;
}

/** Reports the p99 of others' requests beside an attack, which `start` starts and returns how to stop, against their p99 alone. */
async function beside(
  run: Run,
  { url }: MeasuredService,
  { name, requests, rate }: Others,
  start: () => () => Promise<unknown>,
): Promise<void> {
  const steady = () => run.load({ url, connections: 20, requests, seconds: Math.max(4, run.seconds), rate });
  await steady();
  const alone: LoadResult[] = [];
  const together: LoadResult[] = [];
  for (let round = 0; round < run.rounds; round += 1) {
    alone.push(requireGood(await steady()));
    const stop = start();
    together.push(requireGood(await steady()));
    await stop();
  }
  const quiet = leastP99(alone);
  const { perSecond, p50, p99 } = leastP99(together);
  const against = `alone: p99 ${quiet.p99.toFixed(2)} ms`;
  run.report({ name, perSecond, p50, p99, against, value: p99 / quiet.p99, target: { better: 'less', required: 2, stretch: 1.3 } });
}

/** The round with the lowest p99, because other load on the machine can only raise it. */
const leastP99 = (rounds: readonly LoadResult[]) => rounds.reduce((best, one) => (one.p99 < best.p99 ? one : best));

/** Creates a tenant with packets that make its requests expensive; returns its key, and the id of an event before theirs. */
async function makeHostile({ url }: MeasuredService): Promise<{ key: string; firstEventId: string }> {
  const post = async (path: string, body: unknown, key?: string) => {
    const answer = await fetch(`${url}/api/v1${path}`, {
      method: 'POST',
      headers: { ...jsonHeaders, ...(key === undefined ? {} : { 'x-api-key': key }) },
      body: JSON.stringify(body),
    });
    if (answer.status !== 201) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as { id: string; key: string };
  };
  const tenant = await post('/tenants', { name: 'Hostile', tier: 'business' });
  const { key } = await post('/keys', { name: 'hostile', tenant_id: tenant.id });
  const { context: _, ...packet } = JSON.parse(packetOfBytes(2048));
  const stream = await fetch(`${url}/events`, { headers: { 'x-api-key': key } });
  const events = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
  await post('/packets', { ...packet, context: { summary: 'first' } }, key);
  let text = '';
  while (!/^id: ?\S+\n/m.test(text)) text += (await events.read()).value ?? '';
  const firstEventId = /^id: ?(\S+)\n/m.exec(text)![1]!;
  await events.cancel();
  for (const summary of hostileSummaries) await post('/packets', { ...packet, context: { summary } }, key);
  // The search waits for the indexing, so that the case measures only requests.
  await fetch(`${url}/api/v1/packets/search?q=large`, { headers: { 'x-api-key': key } });
  return { key, firstEventId };
}

async function gets({ url }: MeasuredService): Promise<LoadRequest[]> {
  const answer = await fetch(`${url}/api/v1/packets?limit=200`, { headers });
  const { packets } = (await answer.json()) as { packets: { id: string }[] };
  return packets.map(({ id }) => ({ method: 'GET', path: `/api/v1/packets/${id}`, headers }));
}
