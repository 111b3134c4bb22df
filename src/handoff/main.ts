import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import packageJson from '../../package.json' with { type: 'json' };
import { describeCause } from '../kit/errors.ts';
import { FailureLog } from '../kit/failure-log.ts';
import { listen } from '../kit/http/app.ts';
import { type BaseDependencies, createBase, type ServiceBase } from '../kit/http/base.ts';
import { flushed } from '../kit/http/logs.ts';
import { Streams } from '../kit/http/streams.ts';
import { type Stop, starting } from '../kit/lifecycle.ts';
import type { Resolve } from '../kit/outgoing/resolver.ts';
import { Turns } from '../kit/turns.ts';
import { createJobs } from './background.ts';
import { IdentityAdmission } from './http/identity.ts';
import { createHandoffMetrics } from './http/metrics.ts';
import { createLocalCounters, createSharedCounters } from './http/request-counters.ts';
import { createServer } from './http/server.ts';
import { createListening, type Listening } from './http/streams.ts';
import type { Identity } from './identity/identity.ts';
import { claimRules } from './identity-settings.ts';
import { Hub } from './live/hub.ts';
import type { RedisLink } from './live/redis.ts';
import { Relay } from './live/relay.ts';
import { ReplayMemory } from './live/replay-memory.ts';
import { WaitingList } from './live/waiting.ts';
import type { Extension as McpExtension } from './mcp/server.ts';
import { createHandlers, createServices, type Services } from './services.ts';
import { noPublicUrl, type Settings, tierLimits, unusedAdminKey } from './settings.ts';
import { openStore, type Store } from './store/store.ts';

/** The outside world of a service. Tests replace it; programs use the defaults. */
export interface Dependencies extends BaseDependencies {
  /** For webhooks and channels: how names are resolved, which certificate authority is trusted, and the timeout of an attempt in milliseconds. */
  outgoing?: { resolve?: Resolve; ca?: string; attemptMs?: number };
  /** Adds tools, resources and prompts to `/mcp`. */
  mcpExtension?: McpExtension;
  /** How many characters a transaction reads and writes before the event loop runs other work. */
  charactersPerTurn?: number;
  /** How long a command to Redis may take, in milliseconds; 500 by default. */
  redisCommandMs?: number;
}

/** A handoff service that is wired but not yet listening. */
export interface Handoff {
  readonly app: FastifyInstance;
  readonly logger: Logger;
  /** The first admin key, if this start created one. It is never shown again. */
  readonly adminKey: string | undefined;
  /** Warnings for the operator, one sentence each. */
  readonly warnings: readonly string[];
  /** The number of requests that wait for a packet. */
  waiting(): number;
  /** Starts listening, and the jobs; resolves with the address. */
  readonly start: () => Promise<string>;
  /** Finishes the requests and attempts in progress, then closes everything. */
  stop: Stop;
  /** Runs one round of a job, for tests, which control the clock. */
  runOnce: Record<
    | 'sweep'
    | 'schedule'
    | 'follow'
    | 'index'
    | 'prune'
    | 'measure'
    | 'deliver'
    | 'poll'
    | 'recheck'
    | 'heartbeat'
    | 'agents'
    | 'erase'
    | 'anchor'
    | 'identity',
    () => Promise<number>
  >;
}

/** What every part of the service needs. */
export interface Base extends ServiceBase {
  readonly settings: Settings;
  readonly dependencies: Dependencies;
}

/** Wires a handoff service: database, events, services, HTTP, jobs. If a step fails, it closes what the earlier ones have opened. */
export function createHandoff(settings: Settings, dependencies: Dependencies = {}): Promise<Handoff> {
  return starting((closeOnFailedStart) => wire(settings, dependencies, closeOnFailedStart));
}

async function wire(settings: Settings, dependencies: Dependencies, closeOnFailedStart: (close: () => unknown) => void): Promise<Handoff> {
  const base = { settings, dependencies, ...(await createBase('handoff', packageJson.version, settings, dependencies)) };
  const { clock, newId, random, logger, tracer } = base;
  const { databaseUrl, redisUrl } = settings;
  closeOnFailedStart(() => tracer?.stop());
  const store = await openStore({
    databaseUrl,
    clock,
    newId,
    random,
    charactersPerTurn: dependencies.charactersPerTurn,
  });
  closeOnFailedStart(() => store.close());
  const failures = new FailureLog({ logger, clock, isUnavailable: store.isUnavailable });
  // Loaded only if it is used: the Redis library is a fifth of what a start loads.
  const redis =
    redisUrl === undefined
      ? undefined
      : (await import('./live/redis.ts')).createRedisLink(redisUrl, {
          logger,
          clock,
          deployment: store.deployment,
          commandMs: dependencies.redisCommandMs,
        });
  closeOnFailedStart(() => redis?.stop());
  const live = createLive(base, { store, redis, failures });
  closeOnFailedStart(() => live.metrics.stop());
  const identity = await createIdentityParts(base, store, failures);
  const services = createServices(base, store, live, identity);
  closeOnFailedStart(() => services.checks.stop());
  const { createdKey: adminKey, unusedKey = false } = await services.keys.bootstrap(settings.adminKey);
  const listening = createListening({ ...live, ...services, clock, newId });
  const app = createHttp(base, { store, live, services, listening, redis, identity });
  closeOnFailedStart(() => app.close());
  const recheck = async () => {
    await Promise.all([services.connections.recheck(), services.erasures.recheck(), redis?.check()]);
  };
  const jobs = createJobs(base, { store, live, services, failures, recheck, discover: identity && (() => identity.provider.discover()) });
  closeOnFailedStart(() => jobs.stop());

  const stop: Stop = async (onStep = () => undefined) => {
    logger.info('stopping');
    onStep('requests in progress');
    await live.waitingList.stop();
    await app.close();
    onStep('jobs, and deliveries in progress');
    await jobs.stop();
    await services.agents.write().catch((error: unknown) => failures.failed('agents', error));
    live.metrics.stop();
    await redis?.stop();
    await services.checks.stop();
    onStep('the database and its threads');
    await store.close();
    onStep('the traces and the log');
    await tracer?.stop();
    logger.info('stopped');
    await flushed(logger);
  };

  let stopped: Promise<void> | undefined;
  return {
    app,
    logger,
    adminKey,
    warnings: [
      ...(await store.spaceWarnings()),
      ...(unusedKey ? [unusedAdminKey] : []),
      ...(settings.publicUrl === undefined && (await store.webhooks.hasOrigins()) ? [noPublicUrl] : []),
    ],
    waiting: () => live.waitingList.size,
    async start() {
      await redis?.start();
      const address = await listen(app, settings.host, settings.port);
      jobs.start();
      return address;
    },
    stop: (onStep) => (stopped ??= stop(onStep)),
    runOnce: jobs.runOnce,
  };
}

/** Wires sign-in, sessions and tokens; undefined without an identity provider. */
async function createIdentityParts(
  { settings, clock, newId, random }: Base,
  store: Store,
  failures: FailureLog,
): Promise<Identity | undefined> {
  const { oidcIssuer: issuer, publicUrl = '', sessionHours: hours, sessionIdleMinutes: idleMinutes } = settings;
  if (issuer === undefined) return undefined;
  // Loaded only if it is used, like the Redis library.
  const { createIdentity } = await import('./identity/identity.ts');
  const identity = await createIdentity({
    ...{ store, clock, newId, random, rules: claimRules(settings), audiences: settings.oidcAudience, times: { hours, idleMinutes } },
    ...{ sessionKey: settings.sessionKey, failed: (error) => failures.failed('identity', error) },
    provider: {
      ...{ issuer, clientId: settings.oidcClientId, scopes: settings.oidcScopes, tokenTypes: settings.oidcTokenTypes },
      clientSecret: settings.oidcClientSecret ?? settings.oidcClientSecretFile,
      publicUrl,
    },
  });
  return identity;
}

/** Wires what passes events on after a commit, and the metrics that it reports to. */
function createLive(
  { settings, clock, logger }: Base,
  { store, redis, failures }: { store: Store; redis: RedisLink | undefined; failures: FailureLog },
) {
  const replays = new ReplayMemory(clock);
  const turns = new Turns();
  const hub = new Hub({
    trail: {
      sizesAfter: async (tenant, position, limit) => store.whole(tenant).trail.sizesAfter(position, limit),
      between: async (tenant, position, upTo) => store.whole(tenant).trail.between(position, upTo),
      range: (tenant) => store.whole(tenant).trail.range(),
      positions: async (tenants) => store.trail.positions(tenants),
    },
    memory: replays,
    turns,
    onFailure(error, tenant_id) {
      metrics.failedAfterCommit();
      if (store.isUnavailable(error)) failures.failed('events', error);
      else logger.error({ tenant_id, err: describeCause(error) }, 'events could not be sent');
    },
  });
  const streams = new Streams({
    clock,
    logger,
    onEnded: (method, route, status) => metrics.observe(method, route, status),
    isUnavailable: store.isUnavailable,
  });
  const metrics = createHandoffMetrics({ store, streams, replays, clock, isPrivate: settings.metricsToken !== undefined });
  store.onFailure((error, request_ids) => {
    metrics.failedAfterCommit();
    logger.error({ request_ids, err: describeCause(error) }, 'failed after a commit');
  });
  store.onCommit((appended) => hub.receive(appended));
  if (redis !== undefined) {
    const relay = new Relay({
      redis,
      onHint: (tenant, position) => hub.hint(tenant, position),
      onReady: () => {
        hub.poll().catch((error: unknown) => failures.failed('poll', error));
      },
      onIgnored: metrics.relayIgnored,
    });
    store.onCommit(({ tenant, last }) => relay.publish(tenant, last));
  }
  return { hub, streams, metrics, turns, waitingList: new WaitingList(hub) };
}

/** What passes events on. */
export type Live = ReturnType<typeof createLive>;

interface HttpDependencies {
  store: Store;
  live: Live;
  services: Services;
  listening: Listening;
  redis: RedisLink | undefined;
  identity: Identity | undefined;
}

/** Wires the HTTP server. */
function createHttp(base: Base, parts: HttpDependencies): FastifyInstance {
  const { settings, dependencies, clock, newId, logger, tracer } = base;
  const { store, live, services, listening, redis, identity } = parts;
  const { version } = packageJson;
  const local = createLocalCounters();
  return createServer({
    ...settings,
    ...live,
    ...services,
    version,
    logger,
    tracer,
    clock,
    store,
    listening,
    handlers: createHandlers(base, parts),
    identity: identity && new IdentityAdmission(identity),
    tiers: tierLimits(settings),
    counters: redis === undefined ? local : createSharedCounters(redis, local, () => newId(clock())),
    async loadMcp(refusalOf) {
      const { createMcpEndpoint } = await import('./mcp/http.ts');
      return createMcpEndpoint({ version, refusalOf, extension: dependencies.mcpExtension });
    },
    async loadA2a(refusalOf) {
      const { createA2aEndpoint } = await import('./a2a/http.ts');
      return createA2aEndpoint({ refusalOf });
    },
  });
}
