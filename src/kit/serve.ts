import { stopOnSignals } from './lifecycle.ts';
import { SettingsError } from './settings.ts';

/** A service, wired and not yet listening. */
export interface Service {
  /** Starts listening; gives the address. */
  start(): Promise<string>;
  /** Finishes what is in hand, then closes everything. */
  stop(): Promise<void>;
  /** Lines for standard output behind the address: what is shown at this start and never again. */
  readonly notices?: readonly string[];
  /** What its operator should know, a line each. */
  readonly warnings?: readonly string[];
  /** Its log, which is told of the start. */
  readonly logger?: { info(fields: object, message: string): void };
}

/**
 * Runs a service until the program is told to stop. The first line on standard output is its address; notices and the log,
 * whose first line tells of the start, follow; warnings go to standard error. A service that can't start ends the program with 1 and a line for each problem.
 * @param name begins every line
 * @param portFlag the flag that chooses another port, where the port is in use
 */
export async function runService(name: string, create: () => Promise<Service>, portFlag = '--port'): Promise<void> {
  let service: Service | undefined;
  let address: string;
  try {
    service = await create();
    for (const warning of service.warnings ?? []) console.error(`${name}: warning: ${warning}`);
    address = await service.start();
  } catch (error) {
    for (const line of startProblem(error, portFlag).split('\n')) console.error(`${name}: ${line}`);
    // What a notice tells of is done by now, and no later start can show it.
    for (const notice of service?.notices ?? []) console.error(`${name} ${notice}`);
    process.exit(1);
  }
  // Before the address is told: who starts this program may end it as soon as it has read that.
  stopOnSignals(service.stop);
  console.log(`${name} listening on ${address}`);
  for (const notice of service.notices ?? []) console.log(`${name} ${notice}`);
  service.logger?.info({ address, pid: process.pid, node: process.version }, 'started');
}

function startProblem(error: unknown, portFlag: string): string {
  if (error instanceof SettingsError) return error.message;
  const { message, code, port } = error as NodeJS.ErrnoException & { port?: number };
  if (code === 'EADDRINUSE') return `Port ${port} is in use by another program; choose another one with ${portFlag}.`;
  return `The service could not start: ${message}`;
}
