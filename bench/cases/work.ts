import { join } from 'node:path';

import { packetOfBytes } from '../bodies.ts';
import { type Program, startProgram } from '../programs.ts';
import { figureOf, type Target } from '../report.ts';
import { compare, median, requireGood, type Side } from '../rounds.ts';
import { jsonHeaders, type MeasuredService, type Run, withDatabases } from '../run.ts';
import type { WorkerTasks } from '../workers.ts';
import { startBoss } from './postgres.ts';

/** The number of concurrent workers. */
const workerCounts = [8, 64] as const;

/** Packets per second that arrive for waiting workers. */
const arrivalsPerSecond = 200;

/** Takes work with claim-next, on both databases: against listing and claiming, and against pg-boss's fetch. */
export async function work(run: Run): Promise<void> {
  const workers = startProgram<WorkerTasks>('./workers.ts', { place: 'load' });
  const sqlite = await run.startService(`sqlite://${join(run.folder, 'work.db')}`);
  await againstList(run, workers, sqlite, 'claim-next');
  await arrivals(run, workers, sqlite, 'claim-next');
  await sqlite.stop();

  await withDatabases(['service', 'boss'], async (server) => {
    const service = await run.startService(`${server}/service`);
    await againstList(run, workers, service, 'PostgreSQL: claim-next');
    await againstBoss(run, workers, service, `${server}/boss`);
    await arrivals(run, workers, service, 'PostgreSQL: claim-next');
    await service.stop();
  });
  await workers.stop();
}

const perRoundOf = ({ options }: Run) => (options.quick ? 1_000 : 10_000);

/** Rounds in which a group of workers takes packets that were created before the round. */
function taking(run: Run, workers: Program<WorkerTasks>, { url, program }: MeasuredService, how: 'next' | 'list', size: number): Side {
  // Listing and claiming is much slower, so fewer packets are enough.
  const count = how === 'list' ? perRoundOf(run) / 10 : perRoundOf(run);
  return {
    program,
    prepare: () => workers.call('fill', { url, headers: jsonHeaders, count }),
    run: () => workers.call(how, { url, headers: jsonHeaders, workers: size, count }),
  };
}

async function againstList(run: Run, workers: Program<WorkerTasks>, service: MeasuredService, name: string): Promise<void> {
  for (const size of workerCounts) {
    const target: Target | undefined = size === 64 ? { better: 'more', required: 5, stretch: 10 } : undefined;
    const [list, next] = (['list', 'next'] as const).map((how) => taking(run, workers, service, how, size));
    run.report(figureOf(`${name}, ${size} workers`, 'list and claim', await compare(run.rounds, list!, next!), target));
  }
}

async function againstBoss(run: Run, workers: Program<WorkerTasks>, service: MeasuredService, url: string): Promise<void> {
  const boss = await startBoss(run, url);
  if (boss === undefined) return;
  const count = perRoundOf(run);
  const data = JSON.parse(packetOfBytes(2048)) as object;
  for (const size of workerCounts) {
    const fetch: Side = {
      program: boss,
      prepare: () => boss.call('fill', { body: data, count }),
      run: () => boss.call('fetch', { count, atOnce: size }),
    };
    const compared = await compare(run.rounds, fetch, taking(run, workers, service, 'next', size));
    // The CPU time of the database is not measured.
    const { cpuValue: _, ...figure } = figureOf(`PostgreSQL: claim-next, ${size} workers`, 'pg-boss fetch', compared, {
      better: 'more',
      required: 1,
      stretch: 3,
    });
    run.report(figure);
  }
  await boss.stop();
}

/** The time from sending a create to the answer of a waiting worker. */
async function arrivals(run: Run, workers: Program<WorkerTasks>, service: MeasuredService, name: string): Promise<void> {
  const round = { url: service.url, headers: jsonHeaders, workers: 64, perSecond: arrivalsPerSecond, seconds: Math.ceil(run.seconds) };
  await workers.call('arrive', round);
  const results = [];
  for (let turn = 0; turn < run.rounds; turn += 1) results.push(requireGood(await workers.call('arrive', round)));
  const [p50, p99] = [median(results.map((one) => one.p50)), median(results.map((one) => one.p99))];
  run.report({ name: `${name}, ms from create to a waiting worker (p99)`, perSecond: arrivalsPerSecond, p50, p99, value: p99 });
}
