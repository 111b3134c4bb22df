import packageJson from '../../package.json' with { type: 'json' };
import type { FailureLog } from '../kit/failure-log.ts';
import { randomFraction } from '../kit/id.ts';
import { stopLimits } from '../kit/lifecycle.ts';
import { Loop } from '../kit/loop.ts';
import { createAgentWriter } from './jobs/agents.ts';
import { attemptMs, Deliverer } from './jobs/deliverer.ts';
import { createEraser } from './jobs/eraser.ts';
import { createFollower } from './jobs/follower.ts';
import { createIndexingJob } from './jobs/indexer.ts';
import { createMeasurer } from './jobs/measurer.ts';
import { createPruner } from './jobs/pruner.ts';
import { createScheduler } from './jobs/scheduler.ts';
import { createSend } from './jobs/senders.ts';
import { createSweeper } from './jobs/sweeper.ts';
import type { Base, Live } from './main.ts';
import { createDeliveryService } from './service/deliveries.ts';
import type { Services } from './services.ts';
import type { Store } from './store/store.ts';

/** How often due heartbeats are sent, in milliseconds. */
const heartbeatEveryMs = 1000;

/** How often the hub polls the database, and the keys of streams and the connection to Redis are checked, in milliseconds. */
const pollEveryMs = 2000;

interface JobDependencies {
  store: Store;
  live: Live;
  services: Services;
  failures: FailureLog;
  /** Checks the keys of streams and the connection to Redis. */
  recheck: () => Promise<void>;
  /** Finds the identity provider; undefined: there is none to find. */
  discover: (() => Promise<void>) | undefined;
}

/** How often an identity provider that did not answer is asked again, and how often nothing is asked of one that did, in milliseconds. */
const discoverEveryMs = 10_000;
const foundEveryMs = 3_600_000;

/** When the first rounds of pruning and measuring begin after a start, in milliseconds. */
const firstPruneMs = 60_000;

/** Wires the background jobs. They run from `start` to `stop`, which waits for delivery attempts in progress. */
export function createJobs(base: Base, { store, live, services, failures, recheck, discover }: JobDependencies) {
  const { settings, clock } = base;
  const { packets, agents, erasures } = services;
  const runOnce = {
    sweep: createSweeper({ store, packets, clock, refresh: services.keys.refresh, unclaimedTtlSeconds: settings.unclaimedTtlSeconds }),
    schedule: createScheduler({ store, schedules: services.schedules, clock }),
    follow: createFollower({ store, subscriptions: services.subscriptions, clock }),
    index: createIndexingJob(store, clock),
    prune: createPruner({ store, clock, retention: settings }),
    measure: createMeasurer(store, live.metrics.measured),
    agents: createAgentWriter(agents),
    async anchor() {
      return (await services.audit.anchor()) ? 0 : settings.auditAnchorSeconds * 1000;
    },
    erase: createEraser({ store, erasures, now: () => clock().getTime() }),
    async poll() {
      const begun = clock().getTime();
      await live.hub.poll();
      // Measured from the start of this round, so that a slow round does not add to the delay of events. The bounds
      // guard against a clock that was set back.
      return Math.min(pollEveryMs, Math.max(pollEveryMs / 4, begun + pollEveryMs - clock().getTime()));
    },
    async recheck() {
      await recheck();
      return pollEveryMs;
    },
    async heartbeat() {
      live.streams.sendHeartbeats();
      return heartbeatEveryMs;
    },
    async identity() {
      try {
        await discover?.();
        return foundEveryMs;
      } catch (error) {
        failures.failed('identity', error);
        return discoverEveryMs;
      }
    },
  };
  const loopOf = (name: string, job: () => Promise<number>, firstAfterMs = 0) =>
    new Loop({
      async runOnce() {
        const next = await job();
        failures.succeeded(name);
        return next;
      },
      onError: (error) => failures.failed(name, error),
      firstAfterMs,
    });
  const deliverer = delivererOf(base, { store, live, services, failures, wake: () => delivering.wake() });
  const delivering = loopOf('deliver', () => deliverer.round());
  store.onDeliveries(() => delivering.wake());
  // These can wait, and their long reads start a thread, which a start would have to share the processor with.
  const firstAfter = (name: string) => (name === 'prune' || name === 'measure' ? firstPruneMs : 0);
  const unused = [settings.auditAnchorSeconds === 0 && 'anchor', discover === undefined && 'identity'];
  const loops = [
    ...Object.entries(runOnce).flatMap(([name, job]) => (unused.includes(name) ? [] : [loopOf(name, job, firstAfter(name))])),
    delivering,
  ];

  return {
    runOnce: {
      ...runOnce,
      async deliver() {
        const next = await deliverer.round();
        await deliverer.idle();
        return next;
      },
    },
    start() {
      for (const loop of loops) loop.start();
    },
    async stop() {
      store.index.stop();
      await Promise.all(loops.map((loop) => loop.stop()));
      await deliverer.stop(stopLimits.attempts);
    },
  };
}

function delivererOf(
  { settings, dependencies, clock, random }: Base,
  { store, live, services, failures, wake }: Omit<JobDependencies, 'recheck' | 'discover'> & { wake: () => void },
) {
  return new Deliverer({
    store,
    deliveries: createDeliveryService({
      store,
      clock,
      retrySeconds: settings.webhookRetrySeconds,
      disableAfterSeconds: settings.webhookDisableAfterSeconds,
      chance: () => randomFraction(random),
    }),
    clock,
    send: createSend({
      ...services,
      // Loaded with the first push notification, since most processes never send one.
      notificationOf: async (packet, root) => (await import('./a2a/printed.ts')).taskText(packet, root),
      store,
      clock,
      userAgent: `${packageJson.name}/${packageJson.version}`,
      attemptMs: dependencies.outgoing?.attemptMs ?? attemptMs,
    }),
    abort() {
      services.outgoing.close();
      services.mailer?.close();
    },
    onAttempt: live.metrics.attempted,
    onError: (error) => failures.failed('deliver', error),
    wake,
  });
}
