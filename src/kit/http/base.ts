import type { DestinationStream, Logger } from 'pino';
import { type Clock, systemClock } from '../clock.ts';
import { createIds, type NewId, type RandomSource, systemRandom } from '../id.ts';
import type { Tracer } from '../trace-context.ts';
import { createLogger, type LogFormat } from './logs.ts';

/** What every part of a service needs. */
export interface ServiceBase {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly newId: NewId;
  readonly logger: Logger;
  readonly tracer: Tracer | undefined;
}

/** What tests replace in any service; programs use the defaults. */
export interface BaseDependencies {
  clock?: Clock;
  random?: RandomSource;
  /** Where log lines go; standard output by default. */
  logs?: DestinationStream;
}

interface BaseSettings {
  readonly logLevel: string;
  readonly logFormat: LogFormat | undefined;
  readonly otlpEndpoint: string | undefined;
  readonly traceRatio: number;
}

/** Creates the clock, the ids, the log and the tracer of a service. Its traces are those of `baton-` and its name. */
export async function createBase(
  service: string,
  version: string,
  { otlpEndpoint: endpoint, traceRatio: ratio, ...logSettings }: BaseSettings,
  { clock = systemClock, random = systemRandom, logs }: BaseDependencies,
): Promise<ServiceBase> {
  const logger = createLogger(service, logSettings, logs);
  const newId = createIds(random);
  const spans = { ratio, service: `baton-${service}`, version, instance: newId(clock()), logger };
  // Loaded only if it is used.
  const tracer = endpoint === undefined ? undefined : (await import('../tracing/otlp.ts')).createOtlpTracer({ endpoint, ...spans });
  return { clock, random, newId, logger, tracer };
}
