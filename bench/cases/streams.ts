import { join } from 'node:path';

import type { BareBroadcastTasks } from '../bare-broadcast.ts';
import { packetOfBytes } from '../bodies.ts';
import type { Kind, ListenerTasks } from '../listeners.ts';
import { type Program, startProgram } from '../programs.ts';
import { digits } from '../report.ts';
import { median, medianOf, requireGood } from '../rounds.ts';
import { headers, jsonHeaders, type MeasuredService, type Run } from '../run.ts';
import { Tenant } from '../tenant.ts';

const create = { method: 'POST', path: '/api/v1/packets', headers: jsonHeaders, body: packetOfBytes(2048) } as const;
const key = headers['x-api-key'];
const kinds: readonly Kind[] = ['sse', 'websocket'];
const names = { sse: 'SSE', websocket: 'WebSocket' } as const;

interface Context {
  run: Run;
  service: MeasuredService;
  listeners: Program<ListenerTasks>;
}

/** Streams: the cost of a delivered message and of an idle connection, the delay of events, and the effect of listeners on creates. */
export async function streams(run: Run): Promise<void> {
  const service = await run.startService(`sqlite://${join(run.folder, 'streams.db')}`, 'server', { SERVICE_CONNECTIONS_BUSINESS: '20000' });
  const listeners = startProgram<ListenerTasks>('./listeners.ts', { place: 'load' });
  const context = { run, service, listeners };
  try {
    // By then, all one-time allocations are done.
    requireGood(await run.again(service.url, [create]));
    for (const kind of kinds) await idle(context, kind);
    for (const count of run.options.quick ? [1_000] : [1_000, 5_000]) await fanOut(context, count);
    await creating(context);
  } finally {
    await Promise.all([service.stop(), listeners.stop()]);
  }
}

async function idle({ run, service, listeners }: Context, kind: Kind): Promise<void> {
  const count = run.options.quick ? 1_000 : 5_000;
  const before = await service.program.call('memory', null);
  await listeners.call('open', { url: service.url, kind, count, key });
  const after = await service.program.call('memory', null);
  await listeners.call('closeAll', null);
  run.report({
    name: `idle ${names[kind]} connection, KB`,
    against: `${count.toLocaleString('en-US')} of them; heap alone ${digits((after.heapUsed - before.heapUsed) / count / 1024)} KB`,
    value: (after.rss - before.rss) / count / 1024,
    target: { better: 'less', required: 40, stretch: 25 },
  });
}

/** Events per second during the broadcast. */
const rate = 10;

/** Creates at that rate on one connection. */
const pace = ({ run, service }: Context, seconds: number) =>
  run.load({ url: service.url, connections: 1, requests: [create], seconds, rate });

/** CPU time per message, in microseconds, and the delay of messages, in alternating rounds: SSE, WebSocket, and the bare broadcast. */
async function fanOut(context: Context, count: number): Promise<void> {
  const { run, service, listeners } = context;
  const bare = startProgram<BareBroadcastTasks>('./bare-broadcast.ts', { place: 'server' });
  const bareUrl = await bare.call('start', null);
  const perRound = Math.round(rate * run.seconds);
  const cost = { sse: [] as number[], websocket: [] as number[], bare: [] as number[] };
  const delays = { sse: [] as { p50: number; p99: number }[], websocket: [] as { p50: number; p99: number }[] };
  const example = await envelope(service);

  /** The CPU time of a create without listeners. */
  async function createCost(): Promise<number> {
    const before = await service.program.cpu();
    const { requests } = requireGood(await pace(context, run.seconds));
    return ((await service.program.cpu()) - before) / requests;
  }

  for (let round = 0; round < run.rounds; round += 1) {
    const own = await createCost();
    for (const kind of kinds) {
      await listeners.call('open', { url: service.url, kind, count, key });
      const before = await service.program.cpu();
      await listeners.call('begin', null);
      const { requests } = requireGood(await pace(context, run.seconds));
      const all = await listeners.call('settle', count * requests);
      cost[kind].push(((await service.program.cpu()) - before - own * requests) / (count * requests));
      delays[kind].push(all);
      await listeners.call('closeAll', null);
    }
    await listeners.call('open', { url: bareUrl, kind: 'websocket', count, key });
    await listeners.call('begin', null);
    const before = await bare.cpu();
    await bare.call('broadcast', { data: example, count: perRound, rate });
    await listeners.call('settle', count * perRound);
    cost.bare.push(((await bare.cpu()) - before) / (count * perRound));
    await listeners.call('closeAll', null);
  }
  await bare.stop();
  for (const kind of kinds) {
    run.report({
      name: `fan-out to ${count.toLocaleString('en-US')} ${names[kind]} listeners, CPU of a message`,
      p50: median(delays[kind].map(({ p50 }) => p50)),
      p99: median(delays[kind].map(({ p99 }) => p99)),
      cpu: median(cost[kind]),
      against: `bare ws broadcast: ${digits(median(cost.bare))} µs`,
      value: median(cost[kind].map((one, round) => one / cost.bare[round]!)),
      target: { better: 'less', required: 1.2, stretch: 1 },
    });
  }
}

/** An event as long as the service's own, without its timestamp. */
async function envelope(service: MeasuredService): Promise<string> {
  const { packets } = JSON.parse(await new Tenant(service.url).get('/api/v1/packets?limit=1')) as { packets: { id: string }[] };
  return JSON.stringify({ type: 'packet.created', packet_id: packets[0]!.id, data: packets[0] });
}

/** How much a thousand listeners add to the p99 of creates at a steady rate. */
async function creating(context: Context): Promise<void> {
  const { run, listeners, service } = context;
  const rounds = () => medianOf(run.rounds, async () => requireGood(await pace(context, run.seconds)).p99);
  const alone = await rounds();
  await listeners.call('open', { url: service.url, kind: 'sse', count: 1_000, key });
  const together = await rounds();
  await listeners.call('closeAll', null);
  run.report({
    name: `p99 of creates, ${rate} a second, with 1,000 listeners`,
    p99: together,
    against: `without: p99 ${digits(alone)} ms`,
    value: together / alone,
    target: { better: 'less', required: 2, stretch: 1.5 },
  });
}
