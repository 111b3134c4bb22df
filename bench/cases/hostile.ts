import { copyFileSync } from 'node:fs';
import { join } from 'node:path';

import { packetOfBytes, searched } from '../bodies.ts';
import { type Attack, attack, hostileSummaries, largeWrites, pipeline, pongs, replay, writeLarge } from '../hostile.ts';
import type { LoadRequest } from '../load.ts';
import { besides, requireGood } from '../rounds.ts';
import { headers, jsonHeaders, type MeasuredService, type Run, withPostgres } from '../run.ts';
import { Tenant } from '../tenant.ts';
import { hostileFaces, maxMs } from './hostile-faces.ts';
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
  for (const [name, write] of Object.entries(largeWrites)) {
    const figure = { name: `${database}: p99 of creates beside ${name}`, requests: others.creates!, rate: othersPerSecond.creates! / 5 };
    let longest = 0;
    await beside(run, service, { ...figure, maxMs }, () => {
      const watching = service.program.call('watch', null);
      const writing = writeLarge(target, write);
      return async () => {
        await Promise.all([watching, writing.stop()]);
        longest = Math.max(longest, (await service.program.call('watched', null)).longest);
      };
    });
    const rowOf = `${database}: ${name}: the longest turn of the event loop, ms of processor time`;
    run.report({ name: rowOf, value: longest, target: { better: 'less', required: maxMs } });
  }
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

/** Reports the p99 of others' requests, at so many per second and of at most `maxMs`, beside an attack, which `start` starts and returns how to stop. */
async function beside(
  run: Run,
  { url }: MeasuredService,
  { name, requests, rate, maxMs: most }: { name: string; requests: LoadRequest[]; rate: number; maxMs?: number },
  start: () => () => Promise<unknown>,
): Promise<void> {
  const measure = async () => ({
    [name]: requireGood(await run.load({ url, connections: 20, requests, seconds: Math.max(4, run.seconds), rate })),
  });
  for (const figure of await besides(run.rounds, measure, start)) {
    run.report(figure);
    if (most !== undefined) run.report({ name: `${figure.name}, ms`, value: figure.p99!, target: { better: 'less', required: most } });
  }
}

/** Creates a tenant with packets that make its requests expensive; returns its key, and the id of an event before theirs. */
async function makeHostile({ url }: MeasuredService): Promise<{ key: string; firstEventId: string }> {
  const tenant = await Tenant.create(url);
  const { key } = tenant;
  const { context: _, ...packet } = JSON.parse(packetOfBytes(2048));
  const stream = await fetch(`${url}/events`, { headers: { 'x-api-key': key } });
  const events = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
  await tenant.post('/api/v1/packets', { ...packet, context: { summary: 'first' } });
  let text = '';
  while (!/^id: ?\S+\n/m.test(text)) text += (await events.read()).value ?? '';
  const firstEventId = /^id: ?(\S+)\n/m.exec(text)![1]!;
  await events.cancel();
  for (const summary of hostileSummaries) await tenant.post('/api/v1/packets', { ...packet, context: { summary } });
  // The search waits for the indexing, so that the case measures only requests.
  await tenant.get('/api/v1/packets/search?q=large');
  return { key, firstEventId };
}

async function gets({ url }: MeasuredService): Promise<LoadRequest[]> {
  return (await new Tenant(url).packetPaths()).map((path) => ({ method: 'GET', path, headers }));
}
