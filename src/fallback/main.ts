import { randomFillSync } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import pino, { type DestinationStream, type Logger } from 'pino';

import packageJson from '../../package.json' with { type: 'json' };
import { type Clock, systemClock } from '../kit/clock.ts';
import { listen } from '../kit/http/app.ts';
import { logOutput } from '../kit/http/logs.ts';
import { createIds, type RandomSource } from '../kit/id.ts';
import { checkChainRequest } from './http/exports.ts';
import { createFallbackMetrics } from './http/metrics.ts';
import { createServer } from './http/server.ts';
import { createAccess } from './service/access.ts';
import { createChainService } from './service/chains.ts';
import { createExportService } from './service/exports.ts';
import { createSandbox, type SandboxParts } from './service/sandbox.ts';
import { databaseUrlOf, type Settings } from './settings.ts';
import { openStore } from './store/store.ts';

/** What a test turns and a program leaves alone. */
export interface World {
  clock?: Clock;
  random?: RandomSource;
  /** Where log lines go; standard output when left out. */
  logs?: DestinationStream;
  /** Where the built dashboard is. */
  dashboardFolder?: string;
  /** The bounds of templates and YAML. */
  sandbox?: SandboxParts;
}

/** A fallback service, wired and not yet listening. */
export interface Fallback {
  readonly app: FastifyInstance;
  readonly logger: Logger;
  /** What its operator should know, a line each. */
  readonly warnings: readonly string[];
  /** Starts listening; gives the address. */
  start(): Promise<string>;
  /** Finishes what is in hand, then closes everything. */
  stop(): Promise<void>;
}

/** Wires a fallback service: settings, store, services, HTTP. The only file that knows every room. */
export async function createFallback(settings: Settings, world: World = {}): Promise<Fallback> {
  const { clock = systemClock, random = (bytes: Buffer) => void randomFillSync(bytes), dashboardFolder } = world;
  const destination = world.logs ?? logOutput(settings.logFormat);
  const logger: Logger = pino({ level: settings.logLevel, base: { service: 'fallback' } }, destination);
  const newId = createIds(random);

  const store = await openStore({ databaseUrl: databaseUrlOf(settings), clock });
  const metrics = createFallbackMetrics(store);
  const access = createAccess(settings.apiKeys.keys);
  const chains = createChainService({ store, clock, newId });
  const exports = createExportService({ chains, sandbox: createSandbox(world.sandbox), checkRequest: checkChainRequest });

  const app = createServer({
    version: packageJson.version,
    logger,
    clock,
    store,
    chains,
    exports,
    access,
    rateLimit: settings.rateLimit,
    allowLive: settings.allowLive,
    metrics,
    metricsToken: settings.metricsToken,
    ...(dashboardFolder === undefined ? {} : { dashboardFolder }),
  });

  return {
    app,
    logger,
    warnings: [
      ...settings.apiKeys.warnings,
      ...(access.isOpen
        ? ['No API key is configured: everybody who reaches this address may call. Set SERVICE_API_KEYS to change that.']
        : []),
    ],
    start: () => listen(app, settings.host, settings.port),
    async stop() {
      await app.close();
      await exports.stop();
      metrics.stop();
      await store.close();
      await new Promise<void>((resolve) => logger.flush(() => resolve()));
    },
  };
}
