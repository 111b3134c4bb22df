import { readdirSync, readFileSync } from 'node:fs';
import pg from 'pg';

import { type Program, startProgram } from '../programs.ts';
import { jsonHeaders, type MeasuredService, query, type Run, withDatabases } from '../run.ts';
import { Tenant } from '../tenant.ts';
import type { LiveKind, WorkerTasks } from '../workers.ts';

/** The concurrent workers. */
const workers = 8;

/** How long each side runs, in seconds, and in how many parts; in each part the kinds of work follow one another. */
const wholeSeconds = 600;
const quickSeconds = 100;
const parts = 5;

/** The kinds of work. */
const kinds: readonly LiveKind[] = [
  'claim-next',
  'claim-next by due_at',
  'a create and a search',
  'a packet that becomes due',
  'a packet with three deliveries',
];

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
 * Work on PostgreSQL, while another session holds a snapshot and without one. No row that died since the snapshot was taken can be
 * removed, so that what is visited must not grow with them. Processor time counts, since other load on the machine changes the speed.
 */
export async function held(run: Run): Promise<void> {
  const crew = startProgram<WorkerTasks>('./workers.ts', { place: 'load' });
  const sides: Map<LiveKind, number>[] = [];
  await withDatabases(['free', 'held'], async (server) => {
    for (const name of ['free', 'held']) sides.push(await side(run, crew, `${server}/${name}`, name === 'held'));
  });
  await crew.stop();
  const [free, last] = sides as [Map<LiveKind, number>, Map<LiveKind, number>];
  for (const kind of kinds)
    run.report({
      name: `PostgreSQL: ${kind}, of ${workers} workers beside a held snapshot, processor time in the last fifth`,
      against: `without: ${Math.round(free.get(kind)!)} µs`,
      cpu: last.get(kind)!,
      value: last.get(kind)! / free.get(kind)!,
      // A search visits what died, as docs/large-deployments.md says.
      target: kind === 'a create and a search' ? undefined : { better: 'less', required: 1.1 },
    });
}

/** The processor time of each piece of work in the last part of the time, in microseconds, by kind. */
async function side(run: Run, crew: Program<WorkerTasks>, databaseUrl: string, isHeld: boolean): Promise<Map<LiveKind, number>> {
  const service = await run.startService(databaseUrl, 'server', { SERVICE_WEBHOOK_ALLOW: '127.0.0.1' });
  const at = { url: service.url, headers: jsonHeaders };
  const receiver = await crew.call('receive', null);
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
  const seconds = (run.options.quick ? quickSeconds : wholeSeconds) / parts / kinds.length;
  const last = new Map<LiveKind, number>();
  for (let part = 0; part < parts; part += 1) {
    for (const kind of kinds) {
      const unhook = kind === 'a packet with three deliveries' ? await hook(service, receiver) : undefined;
      const before = await cpuOf(databaseUrl, service);
      const { requests, perSecond, failed } = await crew.call('live', { ...at, workers, seconds, kind });
      await unhook?.();
      const after = await cpuOf(databaseUrl, service);
      if (failed > 0) throw new Error(`${failed} of ${requests} failed: ${kind}.`);
      const [ofDatabase, ofService] = (['database', 'service'] as const).map((name) => (after[name] - before[name]) / requests);
      run.say(
        `${isHeld ? 'held' : 'free'}, part ${part + 1}, ${kind}: ${Math.round(perSecond)} a second, ${Math.round(ofDatabase!)} µs of the database and ${Math.round(ofService!)} µs of the service for each.`,
      );
      last.set(kind, ofDatabase! + ofService!);
    }
  }
  await holder.end();
  await service.stop();
  return last;
}

/** Makes a webhook for the events of packets; returns what waits until all are delivered and removes it. */
async function hook({ url }: MeasuredService, receiver: string): Promise<() => Promise<void>> {
  const tenant = new Tenant(url);
  const events = ['packet.created', 'packet.claimed', 'packet.completed'];
  const { id } = await tenant.post('/api/v1/hooks', { url: receiver, events });
  return async () => {
    const pending = async () =>
      JSON.parse(await tenant.get(`/api/v1/hooks/${id}/deliveries?status=pending&limit=1`)) as { deliveries: unknown[] };
    while ((await pending()).deliveries.length > 0) await new Promise((resolve) => setTimeout(resolve, 100));
    await tenant.send(`/api/v1/hooks/${id}`, undefined, { method: 'DELETE' });
  };
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
