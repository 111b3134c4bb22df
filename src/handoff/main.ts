import type { FastifyInstance } from 'fastify';
import type { DestinationStream, Logger } from 'pino';

import packageJson from '../../package.json' with { type: 'json' };
import { type Clock, systemClock } from '../kit/clock.ts';
import { describeCause } from '../kit/errors.ts';
import { FailureLog } from '../kit/failure-log.ts';
import { listen } from '../kit/http/app.ts';
import { createLogger, flushed } from '../kit/http/logs.ts';
import { Streams } from '../kit/http/streams.ts';
import { createIds, type NewId, type RandomSource, systemRandom } from '../kit/id.ts';
import { type Stop, starting } from '../kit/lifecycle.ts';
import type { Resolve } from '../kit/outgoing/resolver.ts';
import type { Tracer } from '../kit/trace-context.ts';
import { Turns } from '../kit/turns.ts';
import { createJobs } from './background.ts';
import { agentHandlers } from './http/agents.ts';
import { answerLinkHandlers } from './http/answer-links.ts';
import { approvalHandlers } from './http/approvals.ts';
import { briefHandlers } from './http/brief.ts';
import { channelHandlers } from './http/channels.ts';
import { contractHandlers } from './http/contracts.ts';
import { erasureHandlers } from './http/erasures.ts';
import type { NounHandlers } from './http/handlers.ts';
import { IdentityAdmission } from './http/identity.ts';
import { keyHandlers } from './http/keys.ts';
import { createHandoffMetrics } from './http/metrics.ts';
import { packetHandlers } from './http/packets.ts';
import { peopleHandlers } from './http/people.ts';
import { delegationHandlers, groupHandlers, policyHandlers } from './http/policies.ts';
import { questionHandlers } from './http/questions.ts';
import { createLocalCounters, createSharedCounters } from './http/request-counters.ts';
import { scheduleHandlers } from './http/schedules.ts';
import { createServer } from './http/server.ts';
import { sessionHandlers } from './http/sign-in.ts';
import { statsHandlers } from './http/stats.ts';
import { createListening, type Listening } from './http/streams.ts';
import { tenantHandlers } from './http/tenants.ts';
import { trailHandlers } from './http/trail.ts';
import { webhookHandlers } from './http/webhooks.ts';
import type { Identity } from './identity/identity.ts';
import { claimRules, signInUse } from './identity-settings.ts';
import { SchemaChecks } from './json-schema/checks.ts';
import { Hub } from './live/hub.ts';
import type { RedisLink } from './live/redis.ts';
import { Relay } from './live/relay.ts';
import { ReplayMemory } from './live/replay-memory.ts';
import { WaitingList } from './live/waiting.ts';
import type { Extension as McpExtension } from './mcp/server.ts';
import { createSending } from './sending.ts';
import { AgentService } from './service/agents.ts';
import { createAnswerLinkService } from './service/answer-links.ts';
import { createApprovalService } from './service/approvals.ts';
import { createAuditService, createHeadSigner } from './service/audit.ts';
import { createCallerOfOrigin } from './service/authentication.ts';
import { createBriefService } from './service/brief.ts';
import { createChannelService } from './service/channels.ts';
import { OpenConnections } from './service/connections.ts';
import { createContractService } from './service/contracts.ts';
import { createDelegationService } from './service/delegations.ts';
import { createErasureService } from './service/erasures.ts';
import { createExecutionService } from './service/executions.ts';
import { createGroupService } from './service/groups.ts';
import { createKeyService } from './service/keys.ts';
import { createListService } from './service/lists.ts';
import { createNoticeService } from './service/notices.ts';
import { createPacketViews } from './service/packet-views.ts';
import { createPacketService } from './service/packets.ts';
import { createPeopleService } from './service/people.ts';
import { createPolicyService } from './service/policies.ts';
import { createQuestionService } from './service/questions.ts';
import { createScheduleService } from './service/schedules.ts';
import { createStatsService } from './service/stats.ts';
import { createTenantService } from './service/tenants.ts';
import { createTrailService } from './service/trail.ts';
import { createWaitingService } from './service/waiting.ts';
import { mailProblem, noPublicUrl, type Settings, tierLimits, unusedAdminKey } from './settings.ts';
import { openStore, type Store } from './store/store.ts';

/** The outside world of a service. Tests replace it; programs use the defaults. */
export interface Dependencies {
  clock?: Clock;
  random?: RandomSource;
  /** Where log lines go; standard output by default. */
  logs?: DestinationStream;
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
    | 'anchor',
    () => Promise<number>
  >;
}

/** What every part of the service needs. */
export interface Base {
  readonly settings: Settings;
  readonly dependencies: Dependencies;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly newId: NewId;
  readonly logger: Logger;
  readonly tracer: Tracer | undefined;
}

async function createBase(settings: Settings, dependencies: Dependencies): Promise<Base> {
  const { clock = systemClock, random = systemRandom } = dependencies;
  const logger = createLogger('handoff', settings, dependencies.logs);
  const newId = createIds(random);
  const { version } = packageJson;
  const { otlpEndpoint: endpoint, traceRatio: ratio } = settings;
  const spans = { ratio, service: 'baton-handoff', version, instance: newId(clock()), logger };
  // Loaded only if it is used, like the Redis library below.
  const tracer = endpoint === undefined ? undefined : (await import('../kit/tracing/otlp.ts')).createOtlpTracer({ endpoint, ...spans });
  return { settings, dependencies, clock, random, newId, logger, tracer };
}

/** Wires a handoff service: database, events, services, HTTP, jobs. If a step fails, it closes what the earlier ones have opened. */
export function createHandoff(settings: Settings, dependencies: Dependencies = {}): Promise<Handoff> {
  return starting((closeOnFailedStart) => wire(settings, dependencies, closeOnFailedStart));
}

async function wire(settings: Settings, dependencies: Dependencies, closeOnFailedStart: (close: () => unknown) => void): Promise<Handoff> {
  const base = await createBase(settings, dependencies);
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
      publicUrl: publicUrl.replace(/\/+$/, ''),
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

/** Wires the operations, and the requests to receivers of webhooks and messages. */
function createServices(base: Base, store: Store, live: Live, identity: Identity | undefined) {
  const { settings, clock, newId, random, logger } = base;
  const parts = { store, clock, newId, random };
  const { turns } = live;
  const agents = new AgentService(store, clock);
  const publicUrl = settings.publicUrl?.replace(/\/+$/, '');
  const views = createPacketViews(store, turns);
  const { urlProblem, ...sending } = createSending(base, { ...parts, views, turns });
  const checks = new SchemaChecks();
  const contracts = createContractService({
    store,
    clock,
    turns,
    checks,
    onSeen: (tenant, agentId) => agents.seen(tenant, agentId),
  });
  const policies = createPolicyService({ store, clock, turns, checks, views });
  const signIn = signInUse(settings);
  const callerOfOrigin = createCallerOfOrigin({ store, clock, signIn: signIn.isOffered ? identity : undefined });
  const facts = { policies, checks, callerOfOrigin, clock };
  const answerLinks = createAnswerLinkService({ views, ...parts, publicUrl, facts, callerOfOrigin, signIn });
  const onChange = () => {
    contracts.changed();
    policies.changed();
  };
  const keys = createKeyService({ ...parts, onChange });
  const connections = new OpenConnections(
    (caller) => (caller.kind === 'key' ? keys.isValid(caller) : identity!.isValid(caller)),
    tierLimits(settings),
  );
  const creation = {
    ...parts,
    ...facts,
    contracts,
    limits: tierLimits(settings),
    quotas: { chainDepthMax: settings.chainDepthMax, openPacketsPerAgent: settings.openPacketsPerAgent },
    onSeen: (tenant: number, agentId: string) => agents.seen(tenant, agentId),
    onCreated: live.metrics.handedOver,
  };
  const packets = createPacketService({ ...creation, signIn });
  return {
    ...{ keys, connections, agents, checks, contracts, policies, packets, answerLinks, views, callerOfOrigin },
    ...sending,
    ...{ people: createPeopleService(parts), tenants: createTenantService(parts) },
    approvals: createApprovalService(creation),
    schedules: createScheduleService({ ...creation, turns, callerOfOrigin, refresh: keys.refresh }),
    executions: createExecutionService({ ...parts, views }),
    audit: createAuditService({ ...parts, turns, signer: signerOf(settings), onHead: (head) => logger.info(head, 'audit head') }),
    erasures: createErasureService({ ...parts, views, retentionDays: settings.retentionDays }),
    ...{ groups: createGroupService(parts), delegations: createDelegationService(parts) },
    waiting: createWaitingService({ views, packets, connections, list: live.waitingList }),
    notices: createNoticeService({ views, clock, answerLinks, publicUrl }),
    channels: createChannelService({ ...parts, urlProblem, mailProblem: mailProblem(settings), publicUrl, signIn }),
  };
}

/** The operations of the service. */
export type Services = ReturnType<typeof createServices>;

interface HttpDependencies {
  store: Store;
  live: Live;
  services: Services;
  listening: Listening;
  redis: RedisLink | undefined;
  identity: Identity | undefined;
}

/** The signer of the audit log's heads, if the settings have its key. */
const signerOf = ({ auditSigningKey }: Settings) => (auditSigningKey === undefined ? undefined : createHeadSigner(auditSigningKey));

/** The handlers of all nouns. */
function createHandlers({ settings, clock }: Base, { store, live: { turns }, services, identity }: HttpDependencies): NounHandlers {
  const { packets, waiting, keys, tenants, agents, contracts, answerLinks, webhooks, channels, views } = services;
  const lists = createListService(store);
  return {
    ...questionHandlers(createQuestionService({ store, views, clock }), packets),
    ...packetHandlers({ store, packets, lists, waiting, turns, batchMax: settings.batchMax, tiers: tierLimits(settings) }),
    ...keyHandlers(keys),
    ...peopleHandlers(services.people),
    ...sessionHandlers(identity),
    ...tenantHandlers(tenants),
    ...agentHandlers(agents),
    ...contractHandlers(contracts),
    ...approvalHandlers(services.approvals, services.executions),
    ...erasureHandlers(services.erasures),
    ...policyHandlers(services.policies),
    ...groupHandlers(services.groups),
    ...delegationHandlers(services.delegations),
    ...scheduleHandlers(services.schedules),
    ...statsHandlers(createStatsService(store, clock)),
    ...answerLinkHandlers(answerLinks, identity?.signsIn ? identity : undefined),
    ...trailHandlers(createTrailService(store), services.audit),
    ...briefHandlers(createBriefService(views)),
    ...webhookHandlers(webhooks),
    ...channelHandlers(channels),
  };
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
