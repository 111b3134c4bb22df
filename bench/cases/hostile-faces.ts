import { join } from 'node:path';

import { packetOfBytes } from '../bodies.ts';
import { type FaceAttack, faceAttacks } from '../hostile-faces.ts';
import { requireGood } from '../rounds.ts';
import { headers, type MeasuredService, type Run, withPostgres } from '../run.ts';
import { Tenant } from '../tenant.ts';
import type { LoadResult } from '../times.ts';

/** Requests of the other tenant per second. */
const othersPerSecond = 50;

/** How many of the attacks, the cheapest first, CI measures. */
const guarded = 2;

const megabyte = 1024 * 1024;

/** The most that others may wait, and the most that the memory of the service may rise. */
export const maxMs = 250;
const maxRiseMb = 400;

/** What one tenant can do by MCP, A2A, answer links and channels, and how long others then wait, on both databases. */
export async function hostileFaces(run: Run): Promise<void> {
  const all = async (url: string, database: string) => {
    for (const attack of faceAttacks) report(run, database, attack, await beside(run, url, attack));
  };
  await all(`sqlite://${join(run.folder, 'faces.db')}`, 'SQLite');
  await withPostgres(run, 0, (url) => all(url, 'PostgreSQL'));
}

/** How often an attack may be measured: a busy machine can spoil a run. */
const runs = 2;

/**
 * The cheapest attacks on SQLite, where a read gives nobody else a turn. Fails when a turn of the event loop takes longer
 * than others may wait, or the memory rises by more than it may, twice in a row. Processor time does not depend on what else
 * the machine does.
 */
export async function turns(run: Run): Promise<void> {
  for (const attack of faceAttacks.slice(0, guarded)) {
    const found: Found[] = [];
    for (let time = 0; time < runs && found.every(isBad); time += 1)
      found.push(await beside(run, `sqlite://${join(run.folder, `turns-${time}.db`)}`, attack));
    const { longest, rise } = found.at(-1)!;
    run.report({
      name: `turns: ${attack.name}, ms of processor time`,
      against: `memory: ${rise.toFixed(0)} MB more`,
      value: longest,
      target: { better: 'less', required: maxMs },
    });
    if (found.every(isBad)) throw new Error(`${attack.name}: ${longest.toFixed(0)} ms in one turn, ${rise.toFixed(0)} MB more.`);
  }
}

const isBad = ({ longest, rise }: Found) => longest > maxMs || rise > maxRiseMb;

/** What others notice of an attack. */
interface Found extends Pick<LoadResult, 'perSecond' | 'p50' | 'p99'> {
  /** How long the attack lasted. */
  readonly seconds: number;
  /** The p99 of others before it, in milliseconds. */
  readonly alone: number;
  /** The most processor time of a turn of the event loop, in milliseconds. */
  readonly longest: number;
  /** The rise of the memory, in MB. */
  readonly rise: number;
}

function report(run: Run, database: string, { name }: FaceAttack, { perSecond, p50, p99, alone, seconds, longest, rise }: Found): void {
  run.say(`${database}: ${name}: ${seconds.toFixed(1)} s, in turns of at most ${longest.toFixed(0)} ms of processor time.`);
  run.report({
    name: `${database}: p99 of others beside ${name}, ms`,
    perSecond,
    p50,
    p99,
    against: `alone: p99 ${alone.toFixed(2)} ms`,
    value: p99,
    target: { better: 'less', required: maxMs },
  });
  run.report({
    name: `${database}: memory beside ${name}, rise in MB`,
    value: rise,
    target: { better: 'less', required: maxRiseMb },
  });
}

/** The p99 of others while an attack lasts, and the memory of a service of its own. */
async function beside(run: Run, databaseUrl: string, { prepare }: FaceAttack): Promise<Found> {
  const settings = { SERVICE_WEBHOOK_ALLOW: '127.0.0.1', SERVICE_PUBLIC_URL: 'http://127.0.0.1' };
  const service = await run.startService(databaseUrl, 'anywhere', settings);
  try {
    await new Tenant(service.url).post('/api/v1/packets', JSON.parse(packetOfBytes(2048)));
    const strike = await prepare(service.url);
    const { p99: alone } = await others(run, service);
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
    const { perSecond, p50, p99 } = worst;
    return { perSecond, p50, p99, seconds, alone, longest, rise: (peak - before) / megabyte };
  } finally {
    await service.stop();
  }
}

async function others(run: Run, { url }: MeasuredService) {
  const requests = [{ method: 'GET' as const, path: '/api/v1/packets?limit=1', headers }];
  return requireGood(await run.load({ url, connections: 20, requests, seconds: 1, rate: othersPerSecond }));
}
