import autocannon, { type Client, type Request } from 'autocannon';
import { Pool } from 'undici';

import { serveTasks } from './programs.ts';
import { atEvenIntervals, type LoadResult, Times, timesOf } from './times.ts';

/** A request that is sent repeatedly. */
export interface LoadRequest {
  method: 'GET' | 'POST' | 'PATCH';
  path: string;
  headers?: Record<string, string>;
  body?: string;
}

/** What to send, and for how long. */
export interface Load {
  url: string;
  connections: number;
  requests: readonly LoadRequest[];
  /**
   * For how long the requests are sent in a loop; each connection starts at a different request. Without it every request
   * is sent once, in order, by the next free connection, like work from a queue.
   */
  seconds?: number;
  /** How many consecutive requests a connection takes at a time (1). */
  batchSize?: number;
  /** Requests per second of all connections together, evenly spaced; default: as many as possible. */
  rate?: number;
}

/** What each connection sends when every request is sent once: it takes its next batch after its last request. */
function inOrder(requests: readonly LoadRequest[], batchSize: number): (client: Client) => void {
  let next = 0;
  return (client) => {
    let own = next;
    let left = 0;
    const take = (request: Request): Request => {
      if (left === 0) [own, next, left] = [next, next + batchSize, batchSize];
      left -= 1;
      const taken = requests[own] ?? requests.at(-1)!;
      own += 1;
      return { ...request, ...taken } as Request;
    };
    client.setRequests([{ setupRequest: take }] as Request[]);
  };
}

/** What each connection sends in a loop: all requests, from a different start. */
function inRounds(requests: readonly LoadRequest[], connections: number): (client: Client) => void {
  let begun = 0;
  return (client) => {
    const first = Math.floor((begun * requests.length) / connections) % requests.length;
    begun += 1;
    client.setRequests([...requests.slice(first), ...requests.slice(0, first)] as Request[]);
  };
}

/**
 * Sends requests at even intervals, however long the answers take. Times count from when a request was due, so that a
 * stall of the service shows in every request that it delays.
 */
async function paced({ url, connections, requests }: Load, seconds: number, rate: number): Promise<LoadResult> {
  const pool = new Pool(url, { connections, pipelining: 1 });
  const times = new Times();
  const open: Promise<void>[] = [];
  let failed = 0;
  await atEvenIntervals(rate * seconds, rate, (index, due) => {
    const { method, path, headers, body } = requests[index % requests.length]!;
    const sending = pool.request({ method, path, headers: headers ?? null, body: body ?? null }).then(async (answer) => {
      await answer.body.dump({ limit: Number.MAX_SAFE_INTEGER });
      times.add(performance.now() - due);
      if (answer.statusCode > 299) failed += 1;
    });
    open.push(
      sending.catch(() => {
        failed += 1;
      }),
    );
  });
  await Promise.all(open);
  await pool.close();
  return times.result(failed);
}

function run(load: Load): Promise<LoadResult> {
  const { url, connections, requests, seconds, batchSize = 1, rate } = load;
  if (rate !== undefined && seconds !== undefined) return paced(load, seconds, rate);
  const extent =
    seconds === undefined
      ? { amount: Math.floor(requests.length / connections) * connections, setupClient: inOrder(requests, batchSize) }
      : { duration: seconds, setupClient: inRounds(requests, connections) };
  const times = new Times();
  let refused = 0;

  return new Promise((resolve, reject) => {
    const options = { url, connections, timeout: 30, ...extent };
    const instance = autocannon(options, (error, { errors, timeouts }) => {
      if (error) reject(error);
      else resolve(times.result(refused + errors + timeouts));
    });
    instance.on('response', (_client, status, _bytes, milliseconds) => {
      times.add(milliseconds);
      if (status < 200 || status > 299) refused += 1;
    });
  });
}

/** A short load: a number of requests, in a loop. */
export type Burst = Pick<Load, 'url' | 'connections' | 'requests'> & { count: number };

const pools = new Map<string, Pool>();

/**
 * Sends a number of requests, each when a connection is free. Connections stay open for the next burst, and a burst takes
 * no longer than its requests; autocannon takes at least a second.
 */
async function burst({ url, connections, requests, count }: Burst): Promise<LoadResult> {
  const pool = pools.get(url) ?? new Pool(url, { connections, pipelining: 1 });
  pools.set(url, pool);
  let sent = 0;
  let failed = 0;
  const times = await timesOf(count, connections, async () => {
    const { method, path, headers, body } = requests[sent++ % requests.length]!;
    const answer = await pool.request({ method, path, headers: headers ?? null, body: body ?? null });
    await answer.body.dump({ limit: Number.MAX_SAFE_INTEGER });
    if (answer.statusCode > 299) failed += 1;
  });
  return { ...times, failed };
}

const tasks = { run, burst };

/** The tasks of the load generator. */
export type LoadTasks = typeof tasks;

serveTasks(tasks);
