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

const tasks = {
  /** Resolves when the service listens. */
  start: (_: null) => serveHandoff({}, process.env),
  /** The memory of the process after a garbage collection, in bytes. */
  memory(_: null): { rss: number; heapUsed: number } {
    globalThis.gc?.();
    const { rss, heapUsed } = process.memoryUsage();
    return { rss, heapUsed };
  },
};

/** The tasks of the measured service, besides serving. */
export type ServiceTasks = typeof tasks;

serveTasks(tasks);
