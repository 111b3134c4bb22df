import { fileURLToPath } from 'node:url';

import { startProgram } from './program.ts';
import { adminKey, type CallOptions, type TestAnswer } from './service.ts';

/** The program, running as a separate process. */
export interface TestProcess {
  readonly address: string;
  /** The lines of its output so far. */
  readonly lines: string[];
  /** The lines of its standard error so far. */
  readonly errors: string[];
  /** Calls a path below `/api/v1` over HTTP, or from the root if it begins with `//`. Rejects without an answer. */
  readonly call: (method: string, path: string, options?: Pick<CallOptions, 'body' | 'key' | 'headers'>) => Promise<TestAnswer>;
  /** Kills it, as `kill -9` does. */
  kill(): Promise<void>;
  /** Stops it with SIGTERM; resolves with its exit code. */
  stop(): Promise<number | null>;
}

interface ProcessOptions {
  databaseUrl: string;
  /** Settings by the names of their variables. Request limits are off unless set here. */
  settings?: Record<string, string>;
  /** The size limit of files that it writes, which to the program looks like a full disk. */
  fileLimitKib?: number;
  /** A command line that the program's is appended to. */
  under?: readonly string[];
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

/** Starts the handoff service; resolves when it listens, rejects if it ends before. */
export async function startProcess({ databaseUrl, settings = {}, fileLimitKib, under }: ProcessOptions): Promise<TestProcess> {
  const { BATON_TEST_POSTGRES: _, SERVICE_ADMIN_KEY: __, ...environment } = process.env;
  const env = { ...environment, ...quiet, SERVICE_DATABASE_URL: databaseUrl, ...settings };
  return run([programs.handoff, 'serve'], env, fileLimitKib, under);
}

interface FallbackProcessOptions {
  /** The value of `--storage`; without it the flag is left out. */
  storage?: string;
  /** Flags of `serve` besides the storage and a free port. */
  flags?: readonly string[];
  settings?: Record<string, string>;
  fileLimitKib?: number;
  under?: readonly string[];
}

/** Starts the fallback service. Calls take paths from the root, and send no key by default. */
export async function startFallbackProcess({
  storage,
  flags = [],
  settings = {},
  fileLimitKib,
  under,
}: FallbackProcessOptions): Promise<TestProcess> {
  const env = { ...withoutSettings(), SERVICE_LOG_LEVEL: 'error', ...settings };
  const program = await run(
    [programs.fallback, 'serve', '--port', '0', ...(storage === undefined ? [] : ['--storage', storage]), ...flags],
    env,
    fileLimitKib,
    under,
  );
  return { ...program, call: (method, path, options) => program.call(method, `/${path}`, { key: null, ...options }) };
}

/** Makes file permissions apply to a program that root runs (util-linux). */
export const withFilePermissions: readonly string[] =
  process.getuid?.() === 0 ? ['setpriv', '--inh-caps=-dac_override', '--bounding-set=-dac_override'] : [];

/** The exit code and the errors of a fallback service that must not start. */
export async function fallbackRefusal(
  args: readonly string[],
  settings: Record<string, string> = {},
): Promise<{ code: number | null; errors: string[] }> {
  const program = startProgram([...withFilePermissions, process.execPath, programs.fallback, 'serve', '--port', '0', ...args], {
    env: { ...withoutSettings(), ...settings },
  });
  // If it starts nevertheless, it is killed, which the exit code shows.
  program.printed(/^/).then(
    () => program.child.kill(),
    () => undefined,
  );
  return { code: await program.ended, errors: program.errors };
}

/** The environment of this process without settings of the services. */
function withoutSettings(): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(SERVICE_|BATON_)/.test(name)));
}

async function run(
  args: readonly string[],
  env: Record<string, string | undefined>,
  fileLimitKib: number | undefined,
  under: readonly string[] = [],
): Promise<TestProcess> {
  // The unit of `ulimit -f` is 512 bytes (POSIX).
  const limit = fileLimitKib === undefined ? [] : ['/bin/sh', '-c', `ulimit -f ${fileLimitKib * 2}; exec "$0" "$@"`];
  const { child, lines, errors, printed, ended } = startProgram([...under, ...limit, process.execPath, ...args], { env });
  const [, address = ''] = await printed(/^(?:handoff|fallback) listening on (\S+)/);
  return {
    address,
    lines,
    errors,
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
