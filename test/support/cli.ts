import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import type { TestContext } from 'node:test';

import { Writer } from '../../src/handoff/cli/output/writer.ts';
import { runCli as runHere } from '../../src/handoff/cli/program.ts';
import { temporaryFolder } from './folder.ts';
import { adminKey, type ServiceOptions, startService, type TestService } from './service.ts';

/** The result of a run. */
export interface CliResult {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliOptions {
  /** The standard input. */
  readonly input?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

/** A service, and a way to run `service-cli` against it with a separate home folder. */
export interface CliBench {
  readonly service: TestService;
  readonly address: string;
  readonly home: string;
  run(args: readonly string[], options?: CliOptions): Promise<CliResult>;
}

/** Starts a service, and configures the program with its address and the admin key. */
export async function startCliBench(t: TestContext, options: ServiceOptions = {}): Promise<CliBench> {
  const service = await startService(t, options);
  const address = await service.handoff.start();
  const home = temporaryFolder(t);
  const own = { HOME: home, SERVICE_URL: `${address}/api/v1`, SERVICE_API_KEY: adminKey };
  return {
    service,
    address,
    home,
    run: (args, { input, environment = {} } = {}) => runCli(args, { input: input ?? '', environment: { ...own, ...environment } }),
  };
}

/** Runs a command to its end in this process, with the given environment. `runCliProgram` runs the program itself. */
export async function runCli(args: readonly string[], { input = '', environment = {} }: CliOptions): Promise<CliResult> {
  const written = { stdout: '', stderr: '' };
  const to = (name: keyof typeof written) => {
    const stream = {
      write(text: string) {
        written[name] += text;
      },
    };
    return new Writer(stream as unknown as NodeJS.WriteStream, environment);
  };
  const streams = { stdin: () => Readable.from([Buffer.from(input)]), out: to('stdout'), err: to('stderr') };
  const exitCode = await runHere({ ...streams, args: [...args], environment, isInteractive: false });
  return { exitCode, ...written };
}

/** The output of a run that must succeed. */
export async function output(bench: CliBench, ...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await bench.run(args);
  assert.equal(exitCode, 0, stderr);
  return stdout;
}

/** Asserts the exit code, the message on standard error, and that it contains no stack. */
export function refused({ exitCode, stderr }: CliResult, code: number, pattern: RegExp): void {
  assert.equal(exitCode, code, stderr);
  assert.match(stderr, pattern);
  assert.doesNotMatch(stderr, /\n\s+at /, 'no stack');
}
