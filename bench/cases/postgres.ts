import { packetOfBytes } from '../bodies.ts';
import type { BossTasks } from '../boss.ts';
import { type Program, startProgram } from '../programs.ts';
import { type Figure, figureOf } from '../report.ts';
import { compare, type Side } from '../rounds.ts';
import { connections, jsonHeaders, type MeasuredService, query, type Run, withDatabases } from '../run.ts';
import type { TransactionTasks } from '../transaction.ts';
import { claimOf, completeOf, taking } from './claim.ts';

const body = packetOfBytes(2048);

/** The speed of the ceiling's PostgreSQL client relative to pgbench, which the targets refer to: 4,300 to 7,700 per second. */
const ofPgbench = 4300 / 7700;

/** Concurrent calls: as many as pg-boss has connections. */
const connectionsOfBoss = 10;

/** The service on its own PostgreSQL, against the bare transaction and against pg-boss. */
export async function postgres(run: Run): Promise<void> {
  await withDatabases(['service', 'boss'], async (server) => {
    const databaseUrl = `${server}/service`;
    const [{ server_version } = {}] = await query(databaseUrl, 'show server_version');
    run.say(`PostgreSQL ${server_version}, its settings as they come, not pinned to a core.`);
    const perRound = run.options.quick ? 2_000 : 10_000;
    const ids = await run.fill(databaseUrl, perRound * (run.rounds + 1));
    const service = await run.startService(databaseUrl);
    await againstTransaction(run, service, databaseUrl, perRound);
    await againstBoss(run, service, `${server}/boss`, ids, perRound);
    await service.stop();
  });
}

/** Leaves out CPU ratios, because the CPU time of the database is not measured. */
function report(run: Run, { cpuValue: _, ...figure }: Figure): void {
  run.report(figure);
}

function creating(run: Run, service: MeasuredService, perRound: number): Side {
  const requests = Array.from(
    { length: perRound },
    () => ({ method: 'POST', path: '/api/v1/packets', headers: jsonHeaders, body }) as const,
  );
  return { program: service.program, run: () => run.load({ url: service.url, connections, requests }) };
}

async function againstTransaction(run: Run, service: MeasuredService, databaseUrl: string, perRound: number): Promise<void> {
  const bare = startProgram<TransactionTasks>('./transaction.ts', { place: 'load' });
  await bare.call('start', databaseUrl);
  const compared = await compare(run.rounds, { program: bare, run: () => bare.call('run', perRound) }, creating(run, service, perRound));
  await bare.stop();
  const rounded = (ratio: number) => Number((ratio / ofPgbench).toFixed(2));
  report(
    run,
    figureOf('PostgreSQL: create', 'bare transaction', compared, { better: 'more', required: rounded(0.5), stretch: rounded(0.8) }),
  );
}

/** pg-boss on its own database; undefined, with a message, where it is not installed. */
export async function startBoss(run: Run, url: string): Promise<Program<BossTasks> | undefined> {
  const boss = startProgram<BossTasks>('./boss.ts', { place: 'server' });
  try {
    await boss.call('start', url);
    return boss;
  } catch (error) {
    await boss.stop();
    const { message } = error as Error;
    if (!message.includes('ERR_MODULE_NOT_FOUND') && !message.includes("Cannot find package 'pg-boss'")) throw error;
    run.say('Not compared with pg-boss, which is not installed: npm --prefix bench ci');
    return undefined;
  }
}

async function againstBoss(run: Run, service: MeasuredService, url: string, ids: readonly string[], perRound: number): Promise<void> {
  const boss = await startBoss(run, url);
  if (boss === undefined) return;
  await compareWithBoss(run, service, boss, ids, perRound);
  await boss.stop();
}

/** The jobs of a round of pg-boss. */
function bossSides(boss: Program<BossTasks>, perRound: number): Record<'send' | 'fetch' | 'complete', Side> {
  // pg-boss fetches single jobs far more slowly than it sends them.
  const fewer = Math.floor(perRound / 4);
  const data = JSON.parse(body) as object;
  const filled = () => boss.call('fill', { body: data, count: fewer });
  return {
    send: { program: boss, run: () => boss.call('send', { body: data, count: perRound }) },
    fetch: { program: boss, prepare: filled, run: () => boss.call('fetch', { count: fewer, atOnce: connectionsOfBoss }) },
    complete: {
      program: boss,
      async prepare() {
        await filled();
        await boss.call('fetch', { count: fewer, atOnce: connectionsOfBoss });
      },
      run: () => boss.call('complete', null),
    },
  };
}

async function compareWithBoss(
  run: Run,
  service: MeasuredService,
  boss: Program<BossTasks>,
  ids: readonly string[],
  perRound: number,
): Promise<void> {
  const { send, fetch, complete } = bossSides(boss, perRound);
  const claimed = taking(run, service, ids, perRound, (id) => [claimOf(id)]);
  const completed = taking(run, service, ids, perRound, (id) => [completeOf(id)]);
  const pairs: [string, string, Side, Side][] = [
    ['create', 'send', send, creating(run, service, perRound)],
    ['claim', 'fetch', fetch, claimed],
    ['complete', 'complete', complete, completed],
  ];
  for (const [name, theirs, ceiling, product] of pairs) {
    const compared = await compare(run.rounds, ceiling, product);
    report(run, figureOf(`PostgreSQL: ${name}`, `pg-boss ${theirs}`, compared, { better: 'more', required: 1, stretch: 3 }));
  }
}
