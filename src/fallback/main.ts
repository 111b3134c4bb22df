import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';

import packageJson from '../../package.json' with { type: 'json' };
import type { Clock } from '../kit/clock.ts';
import { describeCause } from '../kit/errors.ts';
import { FailureLog } from '../kit/failure-log.ts';
import { listen } from '../kit/http/app.ts';
import { type BaseDependencies, createBase, type ServiceBase } from '../kit/http/base.ts';
import { flushed } from '../kit/http/logs.ts';
import { Streams } from '../kit/http/streams.ts';
import { type Stop, starting } from '../kit/lifecycle.ts';
import { Loop } from '../kit/loop.ts';
import { parseAllowList } from '../kit/outgoing/addresses.ts';
import { createGuard } from '../kit/outgoing/guard.ts';
import { Outgoing } from '../kit/outgoing/outgoing.ts';
import type { Resolve } from '../kit/outgoing/resolver.ts';
import type { Tracer } from '../kit/trace-context.ts';
import { Turns } from '../kit/turns.ts';
import { checkChainRequest } from './http/exports.ts';
import { createFallbackMetrics } from './http/metrics.ts';
import { createServer } from './http/server.ts';
import { defaultGrants } from './rules/key-grants.ts';
import { createAccess } from './service/access.ts';
import { createChainService } from './service/chains.ts';
import { createExportService } from './service/exports.ts';
import { maxOpenPrompts } from './service/outage-run.ts';
import type { RehearsalOptions } from './service/prepare.ts';
import { Rehearsals } from './service/rehearsal.ts';
import { createRehearsalTokens } from './service/rehearsal-tokens.ts';
import { createSandbox, type SandboxOptions } from './service/sandbox.ts';
import { createTestService, type TestService } from './service/tests.ts';
import { databaseUrlOf, type Settings } from './settings.ts';
import { openStore, type Store } from './store/store.ts';

/** How many prompts of a rehearsal run at a time. Each makes one call at a time, and the fake providers take 64. */
const rehearsedAtOnce = 16;

/** How often open streams are checked for due heartbeats, in milliseconds. */
const heartbeatCheckMs = 1000;

/** What a program that rehearses a single file decides about its rehearsal. */
interface RehearsalDependencies extends RehearsalOptions {
  /** The token of every chain instead of a random one. */
  token: string;
}

/** Dependencies that tests replace; programs use the defaults. */
export interface Dependencies extends BaseDependencies {
  sandbox?: SandboxOptions;
  /** The environment with the providers' keys. Only variables that chains name are read. */
  environment?: Readonly<Record<string, string | undefined>>;
  /** Certificate authorities to trust for providers instead of the default ones, in PEM. */
  ca?: string;
  rehearsal?: Partial<RehearsalDependencies>;
  /** Resolves host names of providers; by default the system's resolver. */
  resolve?: Resolve;
}

/** A fallback service that is wired but does not listen yet. */
export interface Fallback {
  readonly app: FastifyInstance;
  readonly logger: Logger;
  /** Warnings for the operator, one line each. */
  readonly warnings: readonly string[];
  /** Runs a round of a job; returns the milliseconds until the next round. */
  readonly runOnce: { leases(): Promise<number> };
  /** Starts listening and returns the address. */
  start(): Promise<string>;
  /** Finishes requests in progress, then closes everything. */
  stop: Stop;
}

/** Wires a fallback service: settings, store, services, HTTP. If a step fails, it closes what the earlier ones have opened. */
export function createFallback(settings: Settings, dependencies: Dependencies = {}): Promise<Fallback> {
  return starting((closeOnFailedStart) => wire(settings, dependencies, closeOnFailedStart));
}

async function wire(settings: Settings, dependencies: Dependencies, closeOnFailedStart: (close: () => unknown) => void): Promise<Fallback> {
  const { version } = packageJson;
  const base = await createBase('fallback', version, settings, dependencies);
  const { clock, logger, tracer } = base;
  closeOnFailedStart(() => tracer?.stop());

  const store = await openStore({ databaseUrl: databaseUrlOf(settings), clock });
  closeOnFailedStart(() => store.close());
  const services = createServices(settings, dependencies, { ...base, store, closeOnFailedStart });
  const { access, tests, exports, calls } = services;
  // Without space for it, it is done when the leases of these tests have ended.
  await tests.recover().catch((error: unknown) => {
    if (!store.isFull(error)) throw error;
  });
  const metrics = createFallbackMetrics(store, tests);
  closeOnFailedStart(() => metrics.stop());
  const streams = new Streams({
    clock,
    logger,
    onEnded: (method, route, status) => metrics.observe(method, route, status),
    isUnavailable: store.isUnavailable,
  });
  const loops = createLoops({ streams, tests, failures: new FailureLog({ logger, clock, isUnavailable: store.isUnavailable }) });

  const app = createServer({
    version,
    logger,
    tracer,
    clock,
    store,
    ...services,
    streams,
    host: settings.host,
    rateLimit: settings.rateLimit,
    allowLive: settings.allowLive,
    metrics,
    metricsToken: settings.metricsToken,
    trustedProxies: settings.trustedProxies,
  });
  closeOnFailedStart(() => app.close());

  let stopping: Promise<void> | undefined;
  const stop: Stop = async (onStep = () => undefined) => {
    logger.info('stopping');
    onStep('tests in progress');
    // A test may take longer than a stop; callers that wait for one get the result so far.
    await tests.stop();
    onStep('jobs and streams');
    await loops.leases.stop();
    await loops.heartbeat.stop();
    await streams.close();
    onStep('requests in progress');
    await app.close();
    await exports.stop();
    calls.outgoing.close();
    metrics.stop();
    onStep('the database');
    await store.close();
    onStep('the traces and the log');
    await tracer?.stop();
    logger.info('stopped');
    await flushed(logger);
  };

  return {
    app,
    logger,
    warnings: [
      ...(await store.spaceWarnings()),
      ...settings.apiKeys.warnings,
      ...(access.isOpen
        ? ['No API key is configured: anyone who can reach this address may call. Set SERVICE_API_KEYS to change that.']
        : []),
    ],
    runOnce: { leases: tests.runOnce },
    start() {
      loops.heartbeat.start();
      loops.leases.start();
      return listen(app, settings.host, settings.port);
    },
    stop: (onStep) => (stopping ??= stop(onStep)),
  };
}

interface Base extends ServiceBase {
  readonly store: Store;
  /** Registers what closes a part if a later step of the start fails. */
  readonly closeOnFailedStart: (close: () => unknown) => void;
}

/** Wires the operations, and the calls to providers. */
function createServices(settings: Settings, dependencies: Dependencies, base: Base) {
  const { store, clock, random, newId, logger, tracer, closeOnFailedStart } = base;
  const access = createAccess(settings.apiKeys.keys);
  const turns = new Turns();
  const chains = createChainService({ store, clock, newId, turns });
  const tokens = createRehearsalTokens(store, random, dependencies.rehearsal?.token);
  const exports = createExportService({
    chains,
    tokens,
    sandbox: createSandbox(dependencies.sandbox),
    checkRequest: checkChainRequest,
  });
  closeOnFailedStart(() => exports.stop());
  const calls = createProviderCalls(settings, dependencies, tracer);
  closeOnFailedStart(() => calls.outgoing.close());
  const rehearsals = new Rehearsals();
  const { publicUrl } = settings;
  const tests = createTestService({
    store,
    chains,
    clock,
    newId,
    random,
    tokens,
    rehearsals,
    publicUrl,
    rehearsal: { atOnce: rehearsedAtOnce, groups: new Map(), ...dependencies.rehearsal },
    live: livePartsOf(settings, dependencies, calls, clock),
    retention: { perChain: settings.resultsPerChain, seconds: settings.resultRetentionSeconds },
    onError: (error) => logger.error({ err: describeCause(error) }, 'a test failed to run'),
  });
  closeOnFailedStart(() => tests.stop());
  return { access, turns, chains, tokens, exports, calls, rehearsals, publicUrl, tests };
}

/** What runs while the service does: heartbeats of streams, and the leases of tests. */
function createLoops({ streams, tests, failures }: { streams: Streams; tests: TestService; failures: FailureLog }) {
  const heartbeat = new Loop({
    async runOnce() {
      streams.sendHeartbeats();
      return heartbeatCheckMs;
    },
    onError: (error) => failures.failed('heartbeat', error),
  });
  const leases = new Loop({
    async runOnce() {
      const next = await tests.runOnce();
      failures.succeeded('leases');
      return next;
    },
    onError: (error) => failures.failed('leases', error),
  });
  return { heartbeat, leases };
}

type ProviderCalls = ReturnType<typeof createProviderCalls>;

/** What tests with real calls need. */
const livePartsOf = (settings: Settings, { environment = {} }: Dependencies, calls: ProviderCalls, clock: Clock) => ({
  ...calls,
  allowed: settings.allowLive,
  environment,
  grants: settings.liveKeys ?? defaultGrants,
  clock,
  now: () => performance.now(),
});

/** Creates the client for calls to providers. It reaches private addresses only if they are explicitly allowed. */
function createProviderCalls(
  { liveAllow }: Settings,
  { ca, resolve }: Dependencies,
  tracer: Tracer | undefined,
): { outgoing: Outgoing; urlProblem: (url: string) => Promise<string | undefined> } {
  const allow = parseAllowList(liveAllow);
  const guard = createGuard({ allow, setting: 'SERVICE_LIVE_ALLOW', plainHttp: true, ...(resolve === undefined ? {} : { resolve }) });
  return {
    outgoing: new Outgoing({ guard, tracer, connectionsPerOrigin: maxOpenPrompts, ...(ca === undefined ? {} : { ca }) }),
    urlProblem: (url) => guard.problem(url),
  };
}
