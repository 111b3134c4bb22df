import { promises as dns } from 'node:dns';

import { serveHandoff } from '../src/handoff/serve.ts';
import { serveTasks } from './programs.ts';

const { BENCH_NAME_SERVER: nameServer = '' } = process.env;
if (nameServer !== '') {
  // The service has no setting for this: it asks the machine's name servers.
  dns.Resolver = class extends dns.Resolver {
    constructor(options?: ConstructorParameters<typeof dns.Resolver>[0]) {
      super(options);
      this.setServers([nameServer]);
    }
  };
}

/** How often the memory is read, in milliseconds, which takes a tenth of one. */
const memoryEveryMs = 10;

/** What is watched from `watch` to `watched`. */
let watching: { peak: number; longest: number } | undefined;

/** Notes the memory now and then, and the processor time of the main thread, in each turn of the event loop. */
function watch(): void {
  const own = { peak: 0, longest: 0 };
  watching = own;
  let before = process.threadCpuUsage();
  let readAt = 0;
  const next = () => {
    const { user, system } = process.threadCpuUsage();
    own.longest = Math.max(own.longest, (user + system - before.user - before.system) / 1000);
    if (performance.now() - readAt > memoryEveryMs) {
      readAt = performance.now();
      own.peak = Math.max(own.peak, process.memoryUsage.rss());
    }
    if (watching !== own) return;
    before = process.threadCpuUsage();
    setImmediate(next);
  };
  setImmediate(next);
}

const tasks = {
  /** Resolves when the service listens. */
  start: (_: null) => serveHandoff({}, process.env),
  /** The memory of the process after a garbage collection, in bytes. */
  memory(_: null): { rss: number; heapUsed: number } {
    globalThis.gc?.();
    const { rss, heapUsed } = process.memoryUsage();
    return { rss, heapUsed };
  },
  /** Begins to watch the memory and the event loop, which then never rests. */
  watch(_: null): void {
    watch();
  },
  /** The most resident memory since `watch`, in bytes, and the most processor time of a turn of the event loop, in milliseconds. */
  watched(_: null): { peak: number; longest: number } {
    const { peak, longest } = watching!;
    watching = undefined;
    return { peak, longest };
  },
};

/** The tasks of the measured service, besides serving. */
export type ServiceTasks = typeof tasks;

serveTasks(tasks);
