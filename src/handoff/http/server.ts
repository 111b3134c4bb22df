import { fileURLToPath } from 'node:url';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';

import type { Clock } from '../../kit/clock.ts';
import { describeCause, type ServiceError, toServiceError } from '../../kit/errors.ts';
import { createApp } from '../../kit/http/app.ts';
import { mountExplorers } from '../../kit/http/explorers.ts';
import { mountAll } from '../../kit/http/handlers.ts';
import { uncountRefused } from '../../kit/http/limits.ts';
import { createMount } from '../../kit/http/mount.ts';
import { refuseForeignPages } from '../../kit/http/origin.ts';
import { answerBudget } from '../../kit/http/sender.ts';
import { mountStart } from '../../kit/http/start-page.ts';
import { mountStatic } from '../../kit/http/static.ts';
import { systemHandlers } from '../../kit/http/system.ts';
import type { MemoryBudget } from '../../kit/memory-budget.ts';
import type { Tracer } from '../../kit/trace-context.ts';
import type { Turns } from '../../kit/turns.ts';
import type { A2aEndpoint } from '../a2a/http.ts';
import type { McpEndpoint } from '../mcp/http.ts';
import { apiPrefix, describeHandoff, prefixesOf, serviceTitle } from '../model/api.ts';
import type { Tier } from '../model/common.ts';
import type { HandoffRoute } from '../model/route.ts';
import { requireAgent, requireRight } from '../rules/rights.ts';
import type { TierLimits } from '../rules/tiers.ts';
import type { AgentService } from '../service/agents.ts';
import type { Caller } from '../service/authentication.ts';
import type { KeyService } from '../service/keys.ts';
import type { OccurrenceService } from '../service/occurrences.ts';
import type { PacketViews } from '../service/packet-views.ts';
import type { PacketService } from '../service/packets.ts';
import type { PushService } from '../service/pushes.ts';
import type { SubscriptionService } from '../service/subscriptions.ts';
import type { WaitingService } from '../service/waiting.ts';
import type { Store } from '../store/store.ts';
import { mountA2a } from './a2a.ts';
import { createAdmission } from './admission.ts';
import { maxFormBytes } from './answer-links.ts';
import { allowOrigins } from './cors.ts';
import { type HandoffMount, mounted, type NounHandlers, readParams } from './handlers.ts';
import { keyOf } from './headers.ts';
import type { IdentityAdmission } from './identity.ts';
import { Limits } from './limits.ts';
import { type LocalCall, mountLocally } from './local.ts';
import { mountMcp } from './mcp.ts';
import type { HandoffMetrics } from './metrics.ts';
import type { RequestCounters } from './request-counters.ts';
import { sseHandlers } from './sse.ts';
import type { Listening } from './streams.ts';
import { webSocketHandlers } from './websocket.ts';

export interface ServerDependencies {
  version: string;
  logger: Logger;
  tracer: Tracer | undefined;
  clock: Clock;
  store: Store;
  packets: PacketService;
  agents: AgentService;
  waiting: WaitingService;
  handlers: NounHandlers;
  keys: KeyService;
  pushes: PushService;
  views: PacketViews;
  occurrences: OccurrenceService;
  subscriptions: SubscriptionService;
  turns: Turns;
  metrics: HandoffMetrics;
  tiers: Record<Tier, TierLimits>;
  rateLimitPerMinute: number | undefined;
  counters: RequestCounters;
  /** Origins whose pages may call the API. */
  corsOrigins: readonly string[];
  /** The bearer token that `/metrics` requires; undefined: none. */
  metricsToken: string | undefined;
  trustedProxies: readonly string[];
  listening: Listening;
  /** Whether streams without a key see the tenant `default`. */
  devMode: boolean;
  /** The host that the service listens on. */
  host: string;
  /** Further names of the service, as clients of `/mcp` send them in `Host` and `Origin`. */
  allowedHosts: readonly string[];
  /** Loads the endpoint of MCP, which gets its refusals from `refusalOf`. */
  loadMcp(refusalOf: RefusalOf): Promise<McpEndpoint>;
  /** The same for A2A. */
  loadA2a(refusalOf: RefusalOf): Promise<A2aEndpoint>;
  /** The agents that the agent card of A2A names. */
  a2aAgents: readonly string[];
  /** The address by which others reach the service; undefined: that of each request. */
  publicUrl: string | undefined;
  /** Where only people who have signed in are admitted. */
  oidcRequired: readonly ('console' | 'answers')[];
  /** Who is admitted by an identity provider; undefined: nobody. */
  identity: IdentityAdmission | undefined;
}

/** The refusal that an error stands for. It logs an unexpected error. */
type RefusalOf = (error: unknown) => ServiceError;

const rootLinks = {
  console: '/console',
  api: apiPrefix,
  docs: '/docs',
  redoc: '/redoc',
  openapi: '/openapi.json',
  health: '/health',
  ready: '/ready',
  metrics: '/metrics',
};

/** The largest body of a batch in bytes, for any tier. */
const maxBatchBytes = 16 * 1024 * 1024;

/** Makes the HTTP server of the handoff service. */
export function createServer(parts: ServerDependencies): FastifyInstance {
  const { version, logger, clock, store, metrics, tiers, corsOrigins, listening, devMode, host } = parts;
  const itemLimit = (caller: Caller) => tiers[caller.tenant_tier].packetBytes;

  const app = createApp({
    logger,
    callerField: 'tenant_id',
    tracer: parts.tracer,
    trustedProxies: parts.trustedProxies,
    isUnavailable: store.isUnavailable,
    onAnswered: metrics.observe,
    onLimited: uncountRefused,
  });
  parts.identity?.challengeRefused(app);
  allowOrigins(app, corsOrigins);
  if (devMode) refuseForeignPages(app, { hosts: [host], origins: corsOrigins, hasKey });

  const admit = createAdmission({ ...parts, limits: new Limits(parts.rateLimitPerMinute, tiers, parts.counters) });
  const answers = answerBudget();
  const { mount, call } = mountLocally(
    createMount<Caller, HandoffRoute>({
      app,
      prefixes: prefixesOf,
      admit,
      // An unknown path gets 404 without a key; with one, the key is checked and the request counted.
      // A token is checked for the audience of the path, so that a client of `/mcp` learns that GET is not taken there.
      admitUnrouted(request, reply) {
        if (keyOf(request.headers) === undefined) return undefined;
        const { resource } = (request.routeOfPath ?? {}) as Partial<HandoffRoute>;
        return admit({ access: 'any', ...(resource === undefined ? {} : { resource }) }, request, reply);
      },
      bodyLimit(route, caller) {
        if (route.access === 'link' || route.access === 'sign-in') return maxFormBytes;
        return route.bodySize === 'batch' ? Math.min(100 * itemLimit(caller), maxBatchBytes) : itemLimit(caller);
      },
      tooLarge: (limit) => `The body is larger than the ${limit} bytes that this tenant's tier allows.`,
      readParams,
      answers,
      turns: parts.turns,
      // Those of a public route and of a link have no caller.
      turnOwner: (caller: Caller | undefined) => caller?.tenant_number,
    }),
    {
      turns: parts.turns,
      answers,
      ownerOf: ({ tenant_number, tenant_id }) => ({ turns: tenant_number, answers: tenant_id }),
      authorize(route, caller, actor) {
        requireRight(caller, route);
        if (actor !== undefined) requireAgent(caller, actor);
      },
    },
  );

  mountAll(mount, mounted, {
    ...parts.handlers,
    ...systemHandlers({ ping: store.ping, isStopping: () => app.isStopping(), metrics, metricsToken: parts.metricsToken }),
    ...sseHandlers(listening),
    ...webSocketHandlers(listening, corsOrigins),
  });
  parts.identity?.mount(mount, clock);
  mountProtocols(parts, app, mount, call, answers);
  app.addHook('preClose', () => listening.streams.close());
  mountExplorers(app, ['', apiPrefix], serviceTitle, () => describeHandoff(version));
  mountPages(app, parts);
  return app;
}

/** Mounts the endpoints for agents that speak MCP or A2A. */
function mountProtocols(
  parts: ServerDependencies,
  app: FastifyInstance,
  mount: HandoffMount,
  call: LocalCall<Caller>,
  answers: MemoryBudget,
): void {
  const { version, logger, clock, store, listening } = parts;
  const refusalsOf = (route: string) => (error: unknown) => {
    const refusal = toServiceError(error, store.isUnavailable);
    if (refusal.status >= 500) logger.error({ route, err: describeCause(refusal.cause ?? error) }, 'request failed');
    return refusal;
  };
  const shared = { mount, call, views: parts.views, identity: parts.identity };
  const [mcpRefusal, a2aRefusal] = [refusalsOf('/mcp'), refusalsOf('/a2a')];
  const loadMcp = once(() => parts.loadMcp(mcpRefusal));
  const loadA2a = once(() => parts.loadA2a(a2aRefusal));
  // Loading takes a third of a second: neither the start nor the first call of an agent should wait for it.
  app.addHook('onListen', (done) => {
    loadMcp().catch(mcpRefusal);
    loadA2a().catch(a2aRefusal);
    done();
  });
  mountMcp({
    ...shared,
    streams: listening.streams,
    clock,
    occurrences: parts.occurrences,
    subscriptions: parts.subscriptions,
    load: loadMcp,
  });
  const { pushes, publicUrl, a2aAgents } = parts;
  const ofA2a = {
    listening,
    answers,
    turns: parts.turns,
    store,
    waiting: parts.waiting,
    pushes,
    clock,
    version,
    agents: a2aAgents,
    publicUrl,
  };
  mountA2a({ ...shared, ...ofA2a, load: loadA2a, failed: a2aRefusal });
}

/** The work, done with the first call. */
function once<T>(work: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () => (result ??= work());
}

/** Mounts the console, and the page at the root. */
function mountPages(app: FastifyInstance, { version, identity, oidcRequired }: ServerDependencies): void {
  mountStatic(app, {
    prefix: '/console',
    folder: fileURLToPath(new URL('../web/dist', import.meta.url)),
    notBuilt: 'The console is not built yet: run `npm run build:web` and reload the page.',
    metadata: identity?.consoleMetadata(oidcRequired.includes('console')) ?? {},
  });
  mountStart(app, {
    name: serviceTitle,
    version,
    about: 'Software agents hand units of work to one another, and ask people questions.',
    links: rootLinks,
    pages: [{ href: '/console', text: 'Console', about: 'Open questions, packets, agents, webhooks and keys.' }],
  });
}

/** Whether a request has a key, or the address of an answer link, which pages of others can't know either. Admission refuses wrong ones. */
function hasKey({ headers, query, url }: FastifyRequest): boolean {
  return url.startsWith('/answer/') || keyOf(headers, (query as Record<string, string | undefined>).api_key) !== undefined;
}
