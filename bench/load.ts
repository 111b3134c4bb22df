import autocannon, { type Client, type Request } from 'autocannon';

import { serveTasks } from './programs.ts';
import { type LoadResult, Times } from './times.ts';

/** A request as it is sent again and again. */
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
   * Sends the requests round and round for so long, each connection beginning at another of them; without it, every
   * request once and in their order, each taken by the next connection that is free, as work is taken from a queue.
   */
  seconds?: number;
  /** How many requests that follow one another one connection takes together (1). */
  hand?: number;
  /** Requests a second of all connections together; as many as there can be when left out. */
  rate?: number;
}

/** What each connection sends when every request is sent once: it takes the next hand when it has sent its last one. */
function inOrder(requests: readonly LoadRequest[], hand: number): (client: Client) => void {
  let next = 0;
  return (client) => {
    let own = next;
    let left = 0;
    const take = (request: Request): Request => {
      if (left === 0) [own, next, left] = [next, next + hand, hand];
      left -= 1;
      const taken = requests[own] ?? requests.at(-1)!;
      own += 1;
      return { ...request, ...taken } as Request;
    };
    client.setRequests([{ setupRequest: take }] as Request[]);
  };
}

/** What each connection sends when the requests go round: all of them, each connection beginning elsewhere. */
function inRounds(requests: readonly LoadRequest[], connections: number): (client: Client) => void {
  let begun = 0;
  return (client) => {
    const first = Math.floor((begun * requests.length) / connections) % requests.length;
    begun += 1;
    client.setRequests([...requests.slice(first), ...requests.slice(0, first)] as Request[]);
  };
}

function run({ url, connections, requests, seconds, hand = 1, rate }: Load): Promise<LoadResult> {
  const extent =
    seconds === undefined
      ? { amount: Math.floor(requests.length / connections) * connections, setupClient: inOrder(requests, hand) }
      : { duration: seconds, setupClient: inRounds(requests, connections) };
  const times = new Times();
  let refused = 0;

  return new Promise((resolve, reject) => {
    const options = { url, connections, timeout: 30, ...(rate === undefined ? {} : { overallRate: rate }), ...extent };
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

const tasks = { run };

/** What the load does for the benchmark. */
export type LoadTasks = typeof tasks;

serveTasks(tasks);
