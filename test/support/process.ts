import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { adminKey, type CallOptions, type TestAnswer } from './service.ts';

/** The program itself, as a process of its own. */
export interface TestProcess {
  readonly address: string;
  /** Every line it wrote; complete once it has ended. */
  readonly lines: string[];
  /** Calls a path below `/api/v1` over HTTP; a path that begins with `//` is taken from the root. Rejects when no answer came. */
  call(method: string, path: string, options?: Pick<CallOptions, 'body' | 'key' | 'headers'>): Promise<TestAnswer>;
  /** Ends it at once, as `kill -9` does. */
  kill(): Promise<void>;
  /** Asks it to end; gives its exit code. */
  stop(): Promise<number | null>;
}

export interface ProcessOptions {
  databaseUrl: string;
  /** Settings by their environment names. Request limits are off unless set here. */
  settings?: Record<string, string>;
  /** No file it writes may grow beyond this: to the program, a full disk. */
  fileLimitKib?: number;
}

const programs = {
  handoff: fileURLToPath(new URL('../../bin/service-cli.js', import.meta.url)),
  fallback: fileURLToPath(new URL('../../bin/fallback-service.js', import.meta.url)),
};

const quiet = {
  SERVICE_ADMIN_KEY: adminKey,
  SERVICE_HOST: '127.0.0.1',
  SERVICE_PORT: '0',
  SERVICE_LOG_LEVEL: 'error',
  SERVICE_RATE_LIMIT_PER_MINUTE: '0',
  SERVICE_HOURLY_QUOTA_BUSINESS: '0',
};

/** Starts the program; resolves when it listens, rejects when it ends before. */
export async function startProcess({ databaseUrl, settings = {}, fileLimitKib }: ProcessOptions): Promise<TestProcess> {
  const { BATON_TEST_POSTGRES: _, SERVICE_ADMIN_KEY: __, ...environment } = process.env;
  const env = { ...environment, ...quiet, SERVICE_DATABASE_URL: databaseUrl, ...settings };
  return run([programs.handoff, 'serve'], env, fileLimitKib);
}

export interface FallbackProcessOptions {
  storage: string;
  /** Flags of `serve` besides the storage and a free port. */
  flags?: readonly string[];
  settings?: Record<string, string>;
  fileLimitKib?: number;
}

/** The fallback service's program: its calls take the path as it is, and carry no key. */
export async function startFallbackProcess({
  storage,
  flags = [],
  settings = {},
  fileLimitKib,
}: FallbackProcessOptions): Promise<TestProcess> {
  const env = { ...withoutSettings(), SERVICE_LOG_LEVEL: 'error', ...settings };
  const program = await run([programs.fallback, 'serve', '--port', '0', '--storage', storage, ...flags], env, fileLimitKib);
  return { ...program, call: (method, path, options) => program.call(method, `/${path}`, { key: null, ...options }) };
}

/** Runs a program to which the modes of files count although root runs it (util-linux). */
const heedingModes = ['setpriv', '--inh-caps=-dac_override', '--bounding-set=-dac_override'];

/** What the fallback service's program says where it does not start, and its exit code. */
export async function fallbackRefusal(
  args: readonly string[],
  settings: Record<string, string> = {},
): Promise<{ code: number | null; errors: string[] }> {
  const [command, ...first] = process.getuid?.() === 0 ? [...heedingModes, process.execPath] : [process.execPath];
  const child = spawn(command!, [...first, programs.fallback, 'serve', '--port', '0', ...args], {
    env: { ...withoutSettings(), ...settings },
  });
  const errors: string[] = [];
  createInterface(child.stderr).on('line', (line) => errors.push(line));
  // One that starts after all is no refusal.
  createInterface(child.stdout).once('line', () => child.kill());
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, errors };
}

/** This process's environment without settings of the services. */
function withoutSettings(): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(SERVICE_|BATON_)/.test(name)));
}

async function run(
  args: readonly string[],
  env: Record<string, string | undefined>,
  fileLimitKib: number | undefined,
): Promise<TestProcess> {
  const child =
    fileLimitKib === undefined
      ? spawn(process.execPath, args, { env })
      : // The unit of `ulimit -f` is 512 bytes for the standard's shell.
        spawn('/bin/sh', ['-c', `ulimit -f ${fileLimitKib * 2}; exec "$0" "$@"`, process.execPath, ...args], { env });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const lines: string[] = [];
  const address = await firstLine(child, lines, ended);
  return {
    address,
    lines,
    call: (method, path, options) => call(address, method, path, options),
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
    async stop() {
      child.kill('SIGTERM');
      return ended;
    },
  };
}

/** The address in the first line. */
async function firstLine(child: ChildProcess, lines: string[], ended: Promise<number | null>): Promise<string> {
  const errors: string[] = [];
  createInterface(child.stderr!).on('line', (line) => errors.push(line));
  const listening = new Promise<string>((resolve) => {
    createInterface(child.stdout!).on('line', (line) => {
      lines.push(line);
      const [, address] = /^(?:handoff|fallback) listening on (\S+)$/.exec(line) ?? [];
      if (address !== undefined) resolve(address);
    });
  });
  const failed = ended.then((code) => {
    throw new Error(`The program ended with ${code}: ${errors.join('\n')}`);
  });
  return Promise.race([listening, failed]);
}

async function call(
  address: string,
  method: string,
  path: string,
  { body, key = adminKey, headers = {} }: Pick<CallOptions, 'body' | 'key' | 'headers'> = {},
): Promise<TestAnswer> {
  const answer = await fetch(address + (path.startsWith('//') ? path.slice(1) : `/api/v1${path}`), {
    method,
    headers: {
      ...(key === null ? {} : { 'x-api-key': key }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  const isJson = answer.headers.get('content-type')?.includes('json') && text !== '';
  return { status: answer.status, text, body: isJson ? JSON.parse(text) : undefined, headers: Object.fromEntries(answer.headers) };
}
