import { randomFillSync } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import pino, { type DestinationStream, type Logger } from 'pino';

import packageJson from '../../package.json' with { type: 'json' };
import { type Clock, systemClock } from '../kit/clock.ts';
import { describeCause, listen } from '../kit/http/app.ts';
import { logOutput } from '../kit/http/logs.ts';
import { createIds, type RandomSource } from '../kit/id.ts';
import { createLoop } from '../kit/loop.ts';
import { createLocalCounters, createSharedCounters } from './http/counters.ts';
import { createHandoffMetrics } from './http/metrics.ts';
import { createServer } from './http/server.ts';
import { createIndexingJob } from './jobs/indexer.ts';
import { createPruner } from './jobs/pruner.ts';
import { createSweeper } from './jobs/sweeper.ts';
import { createRedisLink } from './live/redis.ts';
import { createAccessService } from './service/access.ts';
import { createPacketService } from './service/packets.ts';
import { type Settings, tierLimits } from './settings.ts';
import { openStore } from './store/store.ts';

/** What a test turns and a program leaves alone. */
export interface World {
  clock?: Clock;
  random?: RandomSource;
  /** Where log lines go; standard output when left out. */
  logs?: DestinationStream;
}

/** A handoff service, wired and not yet listening. */
export interface Handoff {
  readonly app: FastifyInstance;
  readonly logger: Logger;
  /** The first admin key, when this start made one: shown once, never again. */
  readonly adminKey: string | undefined;
  /** Starts listening and the jobs; gives the address. */
  start(): Promise<string>;
  /** Finishes what is in hand, then closes everything. */
  stop(): Promise<void>;
  /** One round of each job, for tests: the clock they see is the one handed in. */
  runOnce: { sweep(): Promise<number>; index(): Promise<number>; prune(): Promise<number> };
}

/** Wires a handoff service: settings, database, services, jobs, HTTP. The only file that knows every room. */
export async function createHandoff(settings: Settings, world: World = {}): Promise<Handoff> {
  const { clock = systemClock, random = (bytes: Buffer) => void randomFillSync(bytes) } = world;
  const destination = world.logs ?? logOutput(settings.logFormat);
  const logger: Logger = pino({ level: settings.logLevel, base: { service: 'handoff' } }, destination);
  const newId = createIds(random);
  const tiers = tierLimits(settings);

  const store = await openStore({ databaseUrl: settings.databaseUrl, clock, newId });
  const redis = settings.redisUrl === undefined ? undefined : createRedisLink(settings.redisUrl, { logger, clock });
  const local = createLocalCounters();
  const counters = redis === undefined ? local : createSharedCounters(redis, local, () => newId(clock()));
  const metrics = createHandoffMetrics({ store, clock, isPrivate: settings.metricsToken !== undefined });
  const access = createAccessService({ store, clock, newId, random });
  const packets = createPacketService({ store, clock, newId, limits: tiers, onCreated: metrics.handedOver });
  const adminKey = await access.begin(settings.adminKey);

  const runOnce = {
    sweep: createSweeper({ store, packets, clock, unclaimedTtlSeconds: settings.unclaimedTtlSeconds }),
    index: createIndexingJob(store, clock),
    prune: createPruner(store, clock),
  };
  const loops = Object.entries(runOnce).map(([name, job]) =>
    createLoop({ name, runOnce: job, onError: (error) => logger.error({ job: name, err: describeCause(error) }, 'job failed') }),
  );

  const app = createServer({
    version: packageJson.version,
    logger,
    clock,
    store,
    packets,
    access,
    metrics,
    tiers,
    rateLimitPerMinute: settings.rateLimitPerMinute,
    counters,
    batchMax: settings.batchMax,
    corsOrigins: settings.corsOrigins,
    metricsToken: settings.metricsToken,
  });

  return {
    app,
    logger,
    adminKey,
    async start() {
      await redis?.start();
      const address = await listen(app, settings.host, settings.port);
      for (const loop of loops) loop.start();
      return address;
    },
    async stop() {
      logger.info('stopping');
      await app.close();
      await Promise.all(loops.map((loop) => loop.stop()));
      metrics.stop();
      await redis?.stop();
      await store.close();
      logger.info('stopped');
      await new Promise<void>((resolve) => logger.flush(() => resolve()));
    },
    runOnce,
  };
}
