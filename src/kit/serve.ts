import { setFlagsFromString } from 'node:v8';

import { describeCause } from './errors.ts';
import { endWithProcess, type Stop } from './lifecycle.ts';
import { SettingsError } from './settings.ts';

/** A service that is wired but does not listen yet. */
interface Service {
  /** Whether it listens on all addresses of the machine. */
  readonly isEverywhere: boolean;
  /** Starts listening and returns the address. */
  start(): Promise<string>;
  /** Says that it is not ready, and that connections close after their next response; everything is still answered. */
  readonly drain: () => void;
  /** How long it drains after a signal, in seconds. */
  readonly drainSeconds: number;
  /** Finishes requests in progress, then closes everything. */
  stop: Stop;
  /** Lines to print after the address, for example a key that is shown only once. */
  readonly notices?: readonly string[];
  /** Warnings for the operator, one line each. */
  readonly warnings?: readonly string[];
  /** The service's log, which gets a line at the start, and one for an error that ends the process. */
  readonly logger: { info(fields: object, message: string): void; fatal(fields: object, message: string): void };
}

/**
 * Runs a service until the process is told to stop. Standard output starts with the address, followed by the notices and
 * the log; warnings go to standard error. If the service can't start, the process exits 1 with a line for each problem.
 * @param name the prefix of all lines
 * @param portFlag the flag to name when the port is in use
 */
export async function runService(name: string, create: () => Promise<Service>, portFlag = '--port'): Promise<void> {
  // docs/decisions/0027-measured-optimizations.md: V8 would at times make garbage of requests outlive minor collections.
  setFlagsFromString('--no-allocation-site-pretenuring');
  let service: Service | undefined;
  let address: string;
  try {
    service = await create();
    for (const warning of service.warnings ?? []) console.error(`${name}: warning: ${warning}`);
    address = await service.start();
  } catch (error) {
    for (const line of startProblem(error, portFlag).split('\n')) console.error(`${name}: ${line}`);
    // The notices are shown even if listening fails, because no later start shows them again.
    for (const notice of service?.notices ?? []) console.error(`${name} ${notice}`);
    process.exit(1);
  }
  const { stop, drain, drainSeconds, logger, isEverywhere } = service;
  // Before the address is printed: the parent process may send a signal as soon as it has read the address.
  const drainMs = drainSeconds * 1000;
  endWithProcess({
    stop,
    drain,
    drainMs,
    onFatal: (error) => logger.fatal({ err: describeCause(error) }, 'unexpected error, the process ends'),
  });
  console.log(`${name} listening on ${address}${isEverywhere ? ' and on all other addresses of this machine' : ''}`);
  for (const notice of service.notices ?? []) console.log(`${name} ${notice}`);
  logger.info({ address, pid: process.pid, node: process.version }, 'started');
}

function startProblem(error: unknown, portFlag: string): string {
  if (error instanceof SettingsError) return error.message;
  const { message, code, port } = error as NodeJS.ErrnoException & { port?: number };
  if (code === 'EADDRINUSE') return `Port ${port} is in use by another program; choose another one with ${portFlag}.`;
  return `The service could not start: ${message}`;
}
