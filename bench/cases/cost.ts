import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { createExample } from '../../src/handoff/model/examples.ts';
import type { BareBroadcastTasks } from '../bare-broadcast.ts';
import type { BareSenderTasks } from '../bare-sender.ts';
import { packetOfBytes, searched } from '../bodies.ts';
import type { HookTasks } from '../hooks.ts';
import type { ListenerTasks } from '../listeners.ts';
import type { LoadRequest } from '../load.ts';
import { type Program, startProgram } from '../programs.ts';
import { median, requireGood } from '../rounds.ts';
import { connections, headers, jsonHeaders, type MeasuredService, type Run } from '../run.ts';
import { Tenant } from '../tenant.ts';
import type { LoadResult } from '../times.ts';
import { claimOf } from './claim.ts';

/** The committed ratios, which change only by hand, each with its reason. */
type Committed = Record<string, { ratio: number; reason: string }>;

const committed = JSON.parse(readFileSync(new URL('../cost.json', import.meta.url), 'utf8')) as Committed;

/** A ratio above this multiple of the committed one fails the case. */
const allowed = 1.25;

/** Rounds that count, after one that warms up; short, so that product and ceiling meet the same state of the machine. */
const rounds = 3;

/** Requests of a round, requests of a round that uses up packets, listeners of a round of messages, and the events that they get. */
const repeated = 800;
const perRound = 200;
const listenerCount = 200;
const events = 10;

/** The longest median of minor collections, in milliseconds: 0.6 to 2 on a busy machine, up to 7 on a slow one, 17 to 20 with objects that survive. */
const maxCollectionMs = 12;

/**
 * How often a cost above its limit may be measured. What a busy machine adds is never the same for long, so that the least of
 * all rounds of both sides comes down to what they take; the cost of a change does not go away.
 */
const runs = 4;

/** A process and what it is measured with: a round resolves with the number of requests, deliveries or messages. */
interface Side {
  program: { cpu(): Promise<number> };
  prepare?: () => Promise<unknown>;
  run: (round: number) => Promise<number>;
}

interface Costs {
  name: string;
  bare: Side;
  product: Side;
}

/** The least CPU time by request so far, in microseconds, and the least ratio of two rounds that followed one another. */
interface Least {
  bare: number;
  product: number;
  ratio: number;
}

/**
 * The ratio of a comparison. On a machine whose speed changes, one side may have had the fast moments alone; then two rounds
 * that followed one another compare better. A change that costs more raises both.
 */
const ratioOf = ({ bare, product, ratio }: Least): number => Math.min(product / bare, ratio);

/** CPU time by request, in microseconds. */
async function costOf({ program, prepare, run }: Side, round: number): Promise<number> {
  await prepare?.();
  const before = await program.cpu();
  const count = await run(round);
  return ((await program.cpu()) - before) / count;
}

/**
 * Measures all comparisons in alternating rounds. What else runs on the machine can only add to a round, so the least of
 * each side counts.
 */
async function measure(all: readonly Costs[], least: ReadonlyMap<string, Least>, firstRound: number): Promise<void> {
  for (let round = firstRound; round <= firstRound + rounds; round += 1) {
    for (const { name, bare, product } of all) {
      const [own, reference] = [await costOf(product, round), await costOf(bare, round)];
      if (round === firstRound) continue;
      const found = least.get(name)!;
      found.product = Math.min(found.product, own);
      found.bare = Math.min(found.bare, reference);
      found.ratio = Math.min(found.ratio, own / reference);
    }
  }
}

/**
 * The processor time of a request, message and delivery beside a bare Fastify, broadcast and sender in the same run. It
 * fails when a ratio stays above 1.25 times the one in `cost.json`.
 */
export async function cost(run: Run): Promise<void> {
  const databaseUrl = `sqlite://${join(run.folder, 'cost.db')}`;
  const ids = await run.fill(databaseUrl, 2 * perRound * (rounds + 1) * runs);
  const service = await run.startService(databaseUrl, 'server', {
    SERVICE_WEBHOOK_ALLOW: '127.0.0.1',
    SERVICE_CONNECTIONS_BUSINESS: '1000',
  });
  const programs = {
    listeners: startProgram<ListenerTasks>('./listeners.ts', { place: 'load' }),
    hooks: startProgram<HookTasks>('./hooks.ts', { place: 'load' }),
    broadcast: startProgram<BareBroadcastTasks>('./bare-broadcast.ts', { place: 'server' }),
    sender: startProgram<BareSenderTasks>('./bare-sender.ts', { place: 'server' }),
  };
  try {
    const all = [...(await requests(run, service, ids)), await messages(run, service, programs), await deliveries(service, programs)];
    const least = new Map(
      all.map(({ name }) => [name, { bare: Number.POSITIVE_INFINITY, product: Number.POSITIVE_INFINITY, ratio: Number.POSITIVE_INFINITY }]),
    );
    let dear: readonly Costs[] = all;
    for (let turn = 0; turn < runs && dear.length > 0; turn += 1) {
      await measure(dear, least, turn * (rounds + 1));
      dear = dear.filter(({ name }) => ratioOf(least.get(name)!) > limitOf(name));
    }
    for (const [name, found] of least) report(run, name, found);
    await reportCollections(run, service, ids);
    if (dear.length > 0)
      throw new Error(`${dear.map(({ name }) => name).join(', ')} cost more than ${allowed} times the ratio in bench/cost.json.`);
  } finally {
    await Promise.all([service.stop(), ...Object.values(programs).map((program) => program.stop())]);
  }
}

/** The largest allowed ratio. A case that is not in the file has none yet. */
const limitOf = (name: string): number => Math.round((committed[name]?.ratio ?? 0) * allowed * 100) / 100;

function report(run: Run, name: string, found: Least): void {
  const { bare, product } = found;
  const against = `bare: ${bare.toFixed(1)} µs`;
  run.report({ name: `cost: ${name}`, cpu: product, against, value: ratioOf(found), target: { better: 'less', required: limitOf(name) } });
}

/** Requests, beside a route of a bare Fastify that answers with the same bytes or validates and echoes the same body. */
async function requests(run: Run, { url, program }: MeasuredService, ids: readonly string[]): Promise<Costs[]> {
  const load = async (to: string, what: readonly LoadRequest[], count = repeated) =>
    requireGood(await run.burst({ url: to, connections, requests: what, count })).requests;
  const read = async (name: string, paths: readonly string[], count = repeated): Promise<Costs> => {
    const all = paths.map((path): LoadRequest => ({ method: 'GET', path: `/api/v1${path}`, headers }));
    const text = await new Tenant(url).get(all[0]!.path);
    return {
      name,
      product: { program, run: () => load(url, all, count) },
      bare: {
        program: run.ceiling,
        prepare: () => run.ceiling.call('answerWith', text),
        run: () => load(run.ceilingUrl, [{ method: 'GET', path: '/bytes', headers }]),
      },
    };
  };
  const body = packetOfBytes(2048);
  const echo: Side = {
    program: run.ceiling,
    run: () => load(run.ceilingUrl, [{ method: 'POST', path: '/echo', headers: jsonHeaders, body }]),
  };
  const next: LoadRequest = {
    method: 'POST',
    path: '/api/v1/packets/claim-next',
    headers: jsonHeaders,
    body: JSON.stringify({ agent_id: 'worker', target_agent: createExample.metadata.target_agent.id }),
  };
  // claim-next takes the oldest packets, so claims take the newest.
  const newest = ids.toReversed();
  const claims = (round: number) => newest.slice(round * perRound, (round + 1) * perRound).map(claimOf);
  return [
    await read(
      'get',
      ids.slice(0, 200).map((id) => `/packets/${id}`),
    ),
    await read('page of 50', ['/packets?limit=50']),
    await read('search', [`/packets/search?q=${searched.rare}&limit=10`], 200),
    {
      name: 'create',
      product: { program, run: () => load(url, [{ method: 'POST', path: '/api/v1/packets', headers: jsonHeaders, body }]) },
      bare: echo,
    },
    { name: 'claim', product: { program, run: (round) => load(url, claims(round), perRound) }, bare: echo },
    { name: 'claim-next', product: { program, run: () => load(url, [next], perRound) }, bare: echo },
  ];
}

/**
 * The median duration of minor collections under a load of gets, and of creates. Long ones copy objects that outlive their
 * request, such as those whose shape V8 makes anew for each.
 */
async function reportCollections(run: Run, { url, program }: MeasuredService, ids: readonly string[]): Promise<void> {
  const gets = ids.slice(0, 200).map((id): LoadRequest => ({ method: 'GET', path: `/api/v1/packets/${id}`, headers }));
  const create: LoadRequest = { method: 'POST', path: '/api/v1/packets', headers: jsonHeaders, body: packetOfBytes(2048) };
  for (const [name, requests, count] of [
    ['gets', gets, 20_000],
    ['creates', [create], 5_000],
  ] as const) {
    let value = Number.POSITIVE_INFINITY;
    let against = '';
    // What a busy machine adds is not the same each time; objects that survive make every collection long.
    for (let turn = 0; turn < runs && value > maxCollectionMs; turn += 1) {
      await program.collections();
      requireGood(await run.burst({ url, connections, requests, count }));
      const durations = await program.collections();
      value = Math.min(value, median(durations));
      against = `${durations.length} collections`;
    }
    run.report({
      name: `cost: minor collection during ${name}, ms`,
      against,
      value,
      target: { better: 'less', required: maxCollectionMs },
    });
    if (value > maxCollectionMs) throw new Error(`During ${name} the median of minor collections is ${value.toFixed(1)} ms.`);
  }
}

interface Receivers {
  listeners: Program<ListenerTasks>;
  hooks: Program<HookTasks>;
  broadcast: Program<BareBroadcastTasks>;
  sender: Program<BareSenderTasks>;
}

/** Messages of server-sent events, with their share of the creates, beside a broadcast of `ws`. */
async function messages(run: Run, { url, program }: MeasuredService, { listeners, broadcast }: Receivers): Promise<Costs> {
  const bareUrl = await broadcast.call('start', null);
  const create: LoadRequest = { method: 'POST', path: '/api/v1/packets', headers: jsonHeaders, body: packetOfBytes(2048) };
  const data = JSON.stringify({ type: 'packet.created', data: createExample });
  const key = headers['x-api-key'];
  const open = (to: string, kind: 'sse' | 'websocket') => async () => {
    await listeners.call('open', { url: to, kind, count: listenerCount, key });
    await listeners.call('begin', null);
  };
  const settle = async () => {
    await listeners.call('settle', listenerCount * events);
    await listeners.call('closeAll', null);
    return listenerCount * events;
  };
  return {
    name: 'message',
    product: {
      program,
      prepare: open(url, 'sse'),
      async run() {
        requireGood(await run.burst({ url, connections: 1, requests: [create], count: events }));
        return settle();
      },
    },
    bare: {
      program: broadcast,
      prepare: open(bareUrl, 'websocket'),
      async run() {
        await broadcast.call('broadcast', { data, count: events, rate: 200 });
        return settle();
      },
    },
  };
}

/** Deliveries from the table, sent and recorded, beside signed posts of the same bytes without storage. */
async function deliveries({ url, program }: MeasuredService, { hooks, sender }: Receivers): Promise<Costs> {
  const [own, other] = [await hooks.call('listen', false), await hooks.call('listen', true)];
  // A tenant of its own, so that the creates of other cases cause no deliveries.
  const tenant = await Tenant.create(url);
  await tenant.post('/api/v1/hooks', { url: own.url, secret: 'a-secret-for-the-benchmark', events: ['packet.created'] });
  const packet = JSON.parse(packetOfBytes(2048));
  const body = JSON.stringify({ type: 'packet.created', data: packet });
  const requestsOf = async (result: Promise<LoadResult>) => requireGood(await result).requests;
  return {
    name: 'delivery',
    product: {
      program,
      async prepare() {
        await hooks.call('open', { receiver: own.receiver, isOpen: false });
        for (let made = 0; made < perRound; made += 100) await tenant.post('/api/v1/packets/batch', { packets: Array(100).fill(packet) });
      },
      async run() {
        const received = requestsOf(hooks.call('receive', { receiver: own.receiver, count: perRound }));
        await hooks.call('open', { receiver: own.receiver, isOpen: true });
        return received;
      },
    },
    bare: { program: sender, run: () => requestsOf(sender.call('send', { url: other.url, body, count: perRound })) },
  };
}
