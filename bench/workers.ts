import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';

import { packetOfBytes } from './bodies.ts';
import { serveTasks } from './programs.ts';
import { atEvenIntervals, type LoadResult, Times, timesOf } from './times.ts';

/** Workers of one agent, each with its own connection to a service. */
interface WorkerOptions {
  url: string;
  headers: Record<string, string>;
  workers: number;
}

const body = packetOfBytes(2048);
/** The target agent of the packets. */
const target = 'resolver';
/** The page size of a worker that lists packets. */
const pageSize = 20;

interface Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: answers have different shapes.
  body: any;
}

/** A client of the service with a limited number of connections. */
function client({ url, headers }: Pick<WorkerOptions, 'url' | 'headers'>, connections: number) {
  const pool = new Pool(url, { connections, headersTimeout: 90_000 });
  async function ask(method: 'GET' | 'PATCH' | 'POST', path: string, text?: string): Promise<Answer> {
    const answer = await pool.request({ method, path: `/api/v1${path}`, headers, ...(text === undefined ? {} : { body: text }) });
    const read = await answer.body.text();
    return { status: answer.statusCode, body: read === '' ? undefined : JSON.parse(read) };
  }
  return { ask, close: () => pool.destroy() };
}

/** The work of a round: existing packets, taken by all workers together. */
async function taking({ workers, ...at }: WorkerOptions, count: number, take: Take): Promise<LoadResult> {
  const { ask, close } = client(at, workers);
  let worker = 0;
  const ids = new Set<string>();
  try {
    const result = await timesOf(count, workers, async () => {
      worker += 1;
      ids.add(await take(ask, `worker-${worker % workers}`));
    });
    // A packet taken twice counts as a failed request.
    return { ...result, failed: count - ids.size };
  } finally {
    await close();
  }
}
type Take = (ask: ReturnType<typeof client>['ask'], agent: string) => Promise<string>;

const waitForNext: Take = async (ask, agent) => {
  const request = { agent_id: agent, target_agent: target, wait_seconds: 60 };
  const answer = await ask('POST', '/packets/claim-next', JSON.stringify(request));
  if (answer.status !== 200) throw new Error(`claim-next answered ${answer.status}.`);
  return answer.body.id;
};

/** What a client does without claim-next: it lists waiting packets, oldest first, and claims until it succeeds. */
const listAndClaim: Take = async (ask, agent) => {
  for (;;) {
    const list = await ask('GET', `/packets?status=created&target_agent=${target}&order=asc&limit=${pageSize}`);
    if (list.status === 503) {
      // Too many concurrent lists: retries, but earlier than Retry-After says.
      await sleep(5);
      continue;
    }
    if (list.status !== 200 || list.body.packets.length === 0) throw new Error(`The list answered ${list.status}.`);
    for (const { id } of list.body.packets) {
      const claimed = await ask('POST', `/packets/${id}/claim`, JSON.stringify({ agent_id: agent }));
      if (claimed.status === 200) return id;
      if (claimed.status !== 409) throw new Error(`The claim answered ${claimed.status}.`);
    }
  }
};

const dayMs = 86_400_000;

/** The packet with a `due_at`. */
const dueIn = (ms: number) => JSON.stringify({ ...JSON.parse(body), due_at: new Date(Date.now() + ms).toISOString() });

type Ask = Parameters<Take>[0];

/** What workers do again and again, by kind: each makes a function that does one piece and returns whether all of it succeeded. */
const liveKinds = {
  'claim-next': (ask: Ask, agent_id: string) => takeNext(ask, { agent_id, target_agent: target }, () => body),
  'claim-next by due_at': (ask: Ask, agent_id: string) =>
    takeNext(ask, { agent_id, target_agent: target, order: 'due' }, () => dueIn(dayMs)),
  /** A search waits until what was created before it is indexed. */
  'a create and a search': (ask: Ask) => async () => {
    const created = await ask('POST', '/packets', body);
    return created.status === 201 && (await ask('GET', '/packets/search?q=handoff&limit=1')).status === 200;
  },
  /** A webhook gets each event. */
  'a packet with three deliveries': (ask: Ask, agent_id: string) => takeNext(ask, { agent_id, target_agent: target }, () => body),
  /** The sweeper notes it. */
  'a packet that becomes due': (ask: Ask) => async () => (await ask('POST', '/packets', dueIn(1))).status === 201,
} as const;

/** Creates a packet, takes the next one and completes it. */
const takeNext = (ask: Ask, request: object, packet: () => string) => async () => {
  const created = await ask('POST', '/packets', packet());
  const claimed = await ask('POST', '/packets/claim-next', JSON.stringify(request));
  const done = await ask('PATCH', `/packets/${claimed.body?.id}`, '{"status":"completed"}');
  return created.status === 201 && claimed.status === 200 && done.status === 200;
};

/** The kinds of work of `live`. */
export type LiveKind = keyof typeof liveKinds;

const tasks = {
  /** Creates the packets of a round. */
  async fill({ count, ...at }: Omit<WorkerOptions, 'workers'> & { count: number }): Promise<void> {
    const { ask, close } = client(at, 2);
    const batch = `{"packets":[${Array(100).fill(body).join(',')}]}`;
    await timesOf(count / 100, 2, async () => {
      const { status } = await ask('POST', '/packets/batch', batch);
      if (status !== 201) throw new Error(`The batch answered ${status}.`);
    });
    await close();
  },
  /** Takes packets with claim-next. */
  next: ({ count, ...crew }: WorkerOptions & { count: number }) => taking(crew, count, waitForNext),
  /** Takes packets by listing and claiming. */
  list: ({ count, ...crew }: WorkerOptions & { count: number }) => taking(crew, count, listAndClaim),
  /** Creates packets that are due, and claims and completes them, a hundred at once. */
  async finish({ count, ...at }: Omit<WorkerOptions, 'workers'> & { count: number }): Promise<void> {
    const { ask, close } = client(at, 2);
    const batch = `{"packets":[${Array(100).fill(dueIn(dayMs)).join(',')}]}`;
    await timesOf(count / 100, 2, async () => {
      const packet_ids = (await ask('POST', '/packets/batch', batch)).body.created.map(({ id }: { id: string }) => id);
      await ask('POST', '/packets/batch/claim', JSON.stringify({ agent_id: 'worker', packet_ids }));
      const { status } = await ask('POST', '/packets/batch/complete', JSON.stringify({ packet_ids }));
      if (status !== 200) throw new Error(`The batch answered ${status}.`);
    });
    await close();
  },
  /** Does work of a kind for a time: the times of each piece. */
  async live({ workers, seconds, kind, ...at }: WorkerOptions & { seconds: number; kind: LiveKind }): Promise<LoadResult> {
    const { ask, close } = client(at, workers);
    const times = new Times();
    let failed = 0;
    const end = performance.now() + seconds * 1000;
    async function work(worker: number): Promise<void> {
      const live = liveKinds[kind](ask, `worker-${worker}`);
      while (performance.now() < end) {
        const begun = performance.now();
        if (!(await live())) failed += 1;
        times.add(performance.now() - begun);
      }
    }
    await Promise.all(Array.from({ length: workers }, (_, worker) => work(worker)));
    await close();
    return times.result(failed);
  },
  /** Starts a receiver of webhooks that takes each delivery; returns its address. */
  async receive(_: null): Promise<string> {
    const server = createServer((request, response) => {
      request.resume().on('end', () => response.end());
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  },
  /** Creates packets at a steady rate for waiting workers: the times from sending a create to a worker's answer. */
  async arrive({ workers, perSecond, seconds, ...at }: WorkerOptions & { perSecond: number; seconds: number }): Promise<LoadResult> {
    const { ask, close } = client(at, workers + 16);
    const times = new Times();
    const sentAt = new Map<string, number>();
    const count = perSecond * seconds;
    let left = count;
    let wrong = 0;
    async function work(worker: number): Promise<void> {
      const request = JSON.stringify({ agent_id: `worker-${worker}`, target_agent: target, wait_seconds: 2 });
      while (left > 0) {
        const { status, body: packet } = await ask('POST', '/packets/claim-next', request);
        if (status === 204) continue;
        left -= 1;
        const sent = sentAt.get(packet?.context?.summary);
        if (status !== 200 || sent === undefined) wrong += 1;
        else times.add(performance.now() - sent);
      }
    }
    const creates: Promise<void>[] = [];
    async function create(packet: string): Promise<void> {
      const { status } = await ask('POST', '/packets', packet);
      if (status !== 201) throw new Error(`The create answered ${status}.`);
    }
    const working = Promise.all(Array.from({ length: workers }, (_, worker) => work(worker)));
    const begun = performance.now();
    const example = JSON.parse(body);
    await atEvenIntervals(count, perSecond, (number) => {
      const summary = `Packet ${number} of ${begun}`;
      sentAt.set(summary, performance.now());
      creates.push(create(JSON.stringify({ ...example, context: { ...example.context, summary } })));
    });
    try {
      // Without its packet a worker would wait for ever.
      await Promise.all([working, ...creates]);
    } finally {
      await close();
    }
    return times.result(wrong);
  },
};

/** The tasks of the workers. */
export type WorkerTasks = typeof tasks;

serveTasks(tasks);
