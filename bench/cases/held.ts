import { readdirSync, readFileSync } from 'node:fs';
import pg from 'pg';

import { type Program, startProgram } from '../programs.ts';
import { jsonHeaders, type MeasuredService, query, type Run, withDatabases } from '../run.ts';
import type { WorkerTasks } from '../workers.ts';

/** The concurrent workers. */
const workers = 8;

/** How long each side runs, in seconds, and how many parts are reported. */
const wholeSeconds = 600;
const quickSeconds = 60;
const parts = 5;

/** How many packets are taken before a quick run, whose time is too short for many. */
const quickDead = 20_000;

/** How many packets wait from the beginning to the end. */
const backlog = 1_000;

/** The processor time of the database and of the service, in microseconds. */
interface Cpu {
  readonly database: number;
  readonly service: number;
}

/**
 * Workers that create, claim and complete packets on PostgreSQL, while another session holds a snapshot and without one. No row
 * that died since the snapshot was taken can be removed, so that what is visited at each claim must not grow with them.
 * Processor time counts, since other load on the machine changes the speed.
 */
export async function held(run: Run): Promise<void> {
  const crew = startProgram<WorkerTasks>('./workers.ts', { place: 'load' });
  const costs: number[] = [];
  await withDatabases(['free', 'held'], async (server) => {
    for (const name of ['free', 'held']) costs.push((await side(run, crew, `${server}/${name}`, name === 'held')).at(-1)!);
  });
  await crew.stop();
  const [free, last] = costs as [number, number];
  run.report({
    name: `PostgreSQL: a packet of ${workers} workers beside a held snapshot, processor time of the last fifth`,
    against: `without: ${Math.round(free)} µs`,
    cpu: last,
    value: last / free,
    target: { better: 'less', required: 1.1 },
  });
}

/** The processor time of each packet, in microseconds, in each part of the time. */
async function side(run: Run, crew: Program<WorkerTasks>, databaseUrl: string, isHeld: boolean): Promise<number[]> {
  const service = await run.startService(databaseUrl);
  const at = { url: service.url, headers: jsonHeaders };
  await crew.call('fill', { ...at, count: backlog });
  const holder = new pg.Client(databaseUrl);
  await holder.connect();
  // The server is stopped below it if a round fails.
  holder.on('error', () => undefined);
  if (isHeld) {
    await holder.query('begin isolation level repeatable read');
    await holder.query('select 1 from packets limit 1');
  }
  // As many as would be taken in minutes, since a shorter run takes few.
  if (run.options.quick) await crew.call('finish', { ...at, count: quickDead });
  // PostgreSQL's autovacuum would do this within a minute.
  await query(databaseUrl, 'vacuum analyze');
  const seconds = (run.options.quick ? quickSeconds : wholeSeconds) / parts;
  const costs: number[] = [];
  for (let part = 0; part < parts; part += 1) {
    const before = await cpuOf(databaseUrl, service);
    const { requests, perSecond } = await crew.call('live', { ...at, workers, seconds });
    const after = await cpuOf(databaseUrl, service);
    const [ofDatabase, ofService] = (['database', 'service'] as const).map((name) => (after[name] - before[name]) / requests);
    run.say(
      `${isHeld ? 'held' : 'free'}, part ${part + 1}: ${Math.round(perSecond)} packets a second, ${Math.round(ofDatabase!)} µs of the database and ${Math.round(ofService!)} µs of the service for each.`,
    );
    costs.push(ofDatabase! + ofService!);
  }
  await holder.end();
  await service.stop();
  return costs;
}

/** Ticks of the processor time in `/proc`, in microseconds. */
const tickMicroseconds = 10_000;

async function cpuOf(databaseUrl: string, service: MeasuredService): Promise<Cpu> {
  const [{ pid } = {}] = await query(databaseUrl, "select split_part(pg_read_file('postmaster.pid'), E'\\n', 1) as pid");
  const processes = readdirSync('/proc').flatMap((name) => statOf(name) ?? []);
  const ticks = processes.filter((one) => one.parent === Number(pid)).reduce((sum, one) => sum + one.ticks, 0);
  const ended = statOf(pid!)!.ended;
  return { database: (ticks + ended) * tickMicroseconds, service: await service.program.cpu() };
}

/** The parent of a process, and the ticks that it and its ended children used; undefined when there is none. */
function statOf(pid: string | number): { parent: number; ticks: number; ended: number } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]), ended: Number(fields[13]) + Number(fields[14]) };
  } catch {
    return undefined;
  }
}
