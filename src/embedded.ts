import { type Dependencies as FallbackDependencies, createFallback as wireFallback } from './fallback/main.ts';
import { type Settings as FallbackSettings, readFallbackSettings } from './fallback/settings.ts';
import { type Dependencies, createHandoff as wireHandoff } from './handoff/main.ts';
import { type Settings as HandoffSettings, readHandoffSettings } from './handoff/settings.ts';

// What the package's export `baton/server` loads when a service is created.

/** A service that runs inside this program. */
export interface EmbeddedService extends AsyncDisposable {
  /** The address that it listens on, for example `http://127.0.0.1:41573`. */
  readonly url: string;
  /** Finishes the requests in progress, then closes everything. `await using` calls it at the end of the block. */
  stop(): Promise<void>;
}

/** A handoff packet service that runs inside this program. Its API is at `/api/v1` below `url`. */
export interface EmbeddedHandoff extends EmbeddedService {
  /** An admin key of its tenant `default`: the given key, or a key that this start created. Undefined if the database already had keys. */
  readonly adminKey: string | undefined;
  /** Runs one round of every job, for tests that control the clock. The jobs also run by themselves. */
  runJobs(): Promise<void>;
}

/** The dependencies of a handoff service that a test can replace, such as the clock, randomness and the log. */
export type EmbeddedDependencies = Dependencies;

/** The defaults, meant for test suites: in memory, no log, a free loopback port, no request limits. */
const forTests = {
  SERVICE_DATABASE_URL: 'sqlite::memory:',
  SERVICE_HOST: '127.0.0.1',
  SERVICE_PORT: '0',
  SERVICE_LOG_LEVEL: 'silent',
  SERVICE_RATE_LIMIT_PER_MINUTE: '0',
  SERVICE_HOURLY_QUOTA_FREE: '0',
  SERVICE_HOURLY_QUOTA_PRO: '0',
  SERVICE_HOURLY_QUOTA_BUSINESS: '0',
};

const nowhere = { write: () => undefined };

/** The dependencies with a destination for log lines. A silent log gets one that discards them, so that standard output is not opened. */
const withLogs = <Given extends { logs?: Dependencies['logs'] }>(dependencies: Given, { logLevel }: { logLevel: string }): Given =>
  logLevel === 'silent' ? { ...dependencies, logs: dependencies.logs ?? nowhere } : dependencies;

/** Starts a handoff packet service inside this program, as `server.ts` describes it. */
export async function createHandoff(settings: Partial<HandoffSettings> = {}, dependencies: Dependencies = {}): Promise<EmbeddedHandoff> {
  const all: HandoffSettings = { ...readHandoffSettings({ environment: forTests }), ...settings };
  const service = await wireHandoff(all, withLogs(dependencies, all));
  const url = await startOrStop(service);
  const { runOnce, stop } = service;
  const runJobs = async () => {
    for (const job of Object.values(runOnce)) await job();
  };
  return { url, adminKey: service.adminKey ?? all.adminKey, runJobs, stop, [Symbol.asyncDispose]: stop };
}

/** Starts a fallback chain service inside this program, as `server.ts` describes it. */
export async function createFallback(
  settings: Partial<FallbackSettings> = {},
  dependencies: FallbackDependencies = {},
): Promise<EmbeddedService> {
  const all: FallbackSettings = {
    ...readFallbackSettings({ flags: { port: '0' }, environment: { SERVICE_LOG_LEVEL: 'silent' } }),
    ...settings,
  };
  const service = await wireFallback(all, withLogs(dependencies, all));
  const url = await startOrStop(service);
  return { url, stop: service.stop, [Symbol.asyncDispose]: service.stop };
}

/** Starts a service and returns its address. If it can't start, closes it. */
function startOrStop({ start, stop }: { start: () => Promise<string>; stop: () => Promise<void> }): Promise<string> {
  return start().catch(async (error: unknown) => {
    await stop();
    throw error;
  });
}
