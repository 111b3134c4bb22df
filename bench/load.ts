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
   * Sends the requests round and round for so long; without it, every request once. They are dealt out in hands of
   * `hand`, one connection after the other, so that they arrive in their order, as work that is taken from a queue does.
   */
  seconds?: number;
  /** How many requests that follow one another belong to one connection (1). */
  hand?: number;
  /** Requests a second of all connections together; as many as there can be when left out. */
  rate?: number;
}

/** Every so many-th hand of the requests. */
function dealt(requests: readonly LoadRequest[], to: number, of: number, hand: number): LoadRequest[] {
  return requests.filter((_, index) => Math.floor(index / hand) % of === to);
}

function run({ url, connections, requests, seconds, hand = 1, rate }: Load): Promise<LoadResult> {
  const share = Math.floor(requests.length / connections / hand) * hand;
  let clients = 0;
  const extent =
    seconds === undefined
      ? {
          amount: share * connections,
          setupClient(client: Client) {
            client.setRequests(dealt(requests, clients, connections, hand).slice(0, share) as Request[]);
            clients += 1;
          },
        }
      : { duration: seconds, requests: requests as Request[] };
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
