import { fileURLToPath } from 'node:url';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';

import type { Clock } from '../../kit/clock.ts';
import { createApp } from '../../kit/http/app.ts';
import { mountExplorers } from '../../kit/http/explorers.ts';
import { mountAll } from '../../kit/http/handlers.ts';
import { uncountRefused } from '../../kit/http/limits.ts';
import type { Metrics } from '../../kit/http/metrics.ts';
import { createMount, lowerCaseIds } from '../../kit/http/mount.ts';
import { refuseForeignPages } from '../../kit/http/origin.ts';
import { mountStart } from '../../kit/http/start-page.ts';
import { mountStatic } from '../../kit/http/static.ts';
import type { Streams } from '../../kit/http/streams.ts';
import { systemHandlers } from '../../kit/http/system.ts';
import type { Tracer } from '../../kit/trace-context.ts';
import type { Turns } from '../../kit/turns.ts';
import { describeFallback, routes } from '../model/api.ts';
import type { FallbackRoute } from '../model/route.ts';
import type { RateLimit } from '../rules/rate-limit.ts';
import type { Access, Caller } from '../service/access.ts';
import type { ChainService } from '../service/chains.ts';
import type { ExportService } from '../service/exports.ts';
import type { Rehearsals } from '../service/rehearsal.ts';
import type { RehearsalTokens } from '../service/rehearsal-tokens.ts';
import type { TestService } from '../service/tests.ts';
import type { Store } from '../store/store.ts';
import { createAdmission, keyParameter } from './admission.ts';
import { chainHandlers } from './chains.ts';
import { exportHandlers } from './exports.ts';
import { isFakeCall, mountFakeProviders, rehearsalTokenHandlers } from './rehearsal.ts';
import { testHandlers } from './tests.ts';

export interface ServerDependencies {
  version: string;
  logger: Logger;
  tracer: Tracer | undefined;
  clock: Clock;
  store: Store;
  /** Where work that takes long gets its turns of the event loop. */
  turns: Turns;
  chains: ChainService;
  exports: ExportService;
  tests: TestService;
  rehearsals: Rehearsals;
  tokens: RehearsalTokens;
  /** The origin at which gateways reach the service; undefined for that of each request. */
  publicUrl: string | undefined;
  streams: Streams;
  access: Access;
  host: string;
  rateLimit: RateLimit | undefined;
  allowLive: boolean;
  metrics: Metrics;
  /** The bearer token of `/metrics`; undefined if it is public. */
  metricsToken: string | undefined;
  trustedProxies: readonly string[];
}

const serviceTitle = 'Baton fallback chain service';

const maxBodyBytes = 1024 * 1024;

/** Creates the HTTP server of the fallback service. */
export function createServer(parts: ServerDependencies): FastifyInstance {
  const { version, logger, tracer, store, tests, access, metrics, trustedProxies, metricsToken, rateLimit } = parts;
  const app = createApp({
    logger,
    tracer,
    trustedProxies,
    isUnavailable: store.isUnavailable,
    onAnswered: metrics.observe,
    onLimited: uncountRefused,
    callerField: 'label',
  });
  // Without configured keys any key is accepted, so a key in a request proves nothing. A token of a rehearsal does.
  if (access.isOpen) refuseForeignPages(app, { hosts: [parts.host], hasKey: isFakeCall });
  const { admit, admitUnrouted } = createAdmission({ access, rateLimit, clock: parts.clock });
  const mount = createMount<Caller, FallbackRoute>({
    app,
    prefixes: () => [''],
    admit,
    admitUnrouted,
    bodyLimit: () => maxBodyBytes,
    tooLarge: (limit) => `The body is larger than the limit of ${limit} bytes.`,
    admissionParameters: [keyParameter],
    readParams: lowerCaseIds(),
    turns: parts.turns,
  });

  mountAll(mount, routes, {
    ...chainHandlers(parts.chains),
    ...exportHandlers(parts),
    ...testHandlers({ tests, streams: parts.streams }),
    ...rehearsalTokenHandlers(parts),
    ...systemHandlers({ ping: store.ping, isStopping: () => app.isStopping(), metrics, metricsToken }),
    getAccess: (_, { caller }) => ({ label: caller.label, may_write: caller.mayWrite, live_allowed: parts.allowLive, version }),
  });
  mountFakeProviders(app, parts.rehearsals);
  mountExplorers(app, [''], serviceTitle, () => describeFallback(version));
  mountStatic(app, {
    prefix: '/dashboard',
    folder: fileURLToPath(new URL('../web/dist', import.meta.url)),
    notBuilt: 'The dashboard is not built yet: run `npm run build:web` and reload the page.',
  });
  mountStart(app, {
    name: serviceTitle,
    version,
    about: 'Chains of AI model providers with fallback rules: explained, tested, exported and imported.',
    links: { docs: '/docs', reference: '/redoc', openapi: '/openapi.json', dashboard: '/dashboard', health: '/health' },
    pages: [{ href: '/dashboard', text: 'Dashboard', about: 'Chains, what happens if a provider fails, tests and exports.' }],
  });
  return app;
}
