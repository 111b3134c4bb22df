import { type World as FallbackWorld, createFallback as wireFallback } from './fallback/main.ts';
import { type Settings as FallbackSettings, readFallbackSettings } from './fallback/settings.ts';
import { type World, createHandoff as wireHandoff } from './handoff/main.ts';
import { type Settings as HandoffSettings, readHandoffSettings } from './handoff/settings.ts';

// The package's door `baton/server`: services inside another program, a test suite above all.

/** A service that runs inside this program. */
export interface EmbeddedService extends AsyncDisposable {
  /** Where it listens, for example `http://127.0.0.1:41573`; the API is below `/api/v1`. */
  readonly url: string;
  /** Finishes the requests in progress, then closes everything. `await using` calls it at the end of the block. */
  stop(): Promise<void>;
}

/** A handoff packet service that runs inside this program. */
export interface EmbeddedHandoff extends EmbeddedService {
  /** An admin key of its tenant `default`: the one given, or one made at this start. Undefined on a database that had keys. */
  readonly adminKey: string | undefined;
  /** One round of every job by hand, for a clock that is turned: what is due by now is done. They run by themselves as well. */
  runJobs(): Promise<void>;
}

/** What a test turns: the clock, the randomness, and where log lines go. */
export type EmbeddedWorld = World;

/** What a test turns of a fallback service. */
export type { World as EmbeddedFallbackWorld } from './fallback/main.ts';

/** The settings of the fallback service by the names that the code uses: `rateLimit` is `--rate-limit`. */
export type { Settings as FallbackSettings } from './fallback/settings.ts';

/** The settings of the handoff service by the names that the code uses: `databaseUrl` is `SERVICE_DATABASE_URL`. */
export type { Settings as HandoffSettings } from './handoff/settings.ts';

/** What is meant for a test suite: nothing on disk, nothing on the terminal, a free port of the loopback, no request limits. */
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

/** Log lines go nowhere where the log is silent: then nothing is opened for them. */
const logsOf = (world: { logs?: World['logs'] }, logLevel: string) => world.logs ?? (logLevel === 'silent' ? nowhere : undefined);

/**
 * Starts a handoff packet service inside this program: `const { url, adminKey } = await createHandoff();`.
 * Without settings it is meant for tests: in memory, on a free port of 127.0.0.1, silent, without request limits. The
 * environment is not read.
 * @throws when it can't listen, or the database can't be opened
 */
export async function createHandoff(settings: Partial<HandoffSettings> = {}, world: World = {}): Promise<EmbeddedHandoff> {
  const all: HandoffSettings = { ...readHandoffSettings({ environment: forTests }), ...settings };
  const logs = logsOf(world, all.logLevel);
  const service = await wireHandoff(all, { ...world, ...(logs === undefined ? {} : { logs }) });
  const url = await startOrStop(service);
  const { runOnce, stop } = service;
  const runJobs = async () => {
    for (const job of Object.values(runOnce)) await job();
  };
  return { url, adminKey: service.adminKey ?? all.adminKey, runJobs, stop, [Symbol.asyncDispose]: stop };
}

/**
 * Starts a fallback chain service inside this program: `const { url } = await createFallback();`.
 * Without settings it is meant for tests: in memory, on a free port of 127.0.0.1, silent, without keys. The environment is
 * not read.
 * @throws when it can't listen, or the storage can't be opened
 */
export async function createFallback(settings: Partial<FallbackSettings> = {}, world: FallbackWorld = {}): Promise<EmbeddedService> {
  const all: FallbackSettings = {
    ...readFallbackSettings({ flags: { port: '0' }, environment: { SERVICE_LOG_LEVEL: 'silent' } }),
    ...settings,
  };
  const logs = logsOf(world, all.logLevel);
  const service = await wireFallback(all, { ...world, ...(logs === undefined ? {} : { logs }) });
  const url = await startOrStop(service);
  return { url, stop: service.stop, [Symbol.asyncDispose]: service.stop };
}

/** Starts a service and gives its address; one that can't start is closed again. */
function startOrStop({ start, stop }: { start(): Promise<string>; stop(): Promise<void> }): Promise<string> {
  return start().catch(async (error: unknown) => {
    await stop();
    throw error;
  });
}
