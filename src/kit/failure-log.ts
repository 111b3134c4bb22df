import type { Clock } from './clock.ts';
import { describeBriefly, describeCause, ServiceError } from './errors.ts';

interface FailureLogDependencies {
  readonly logger: { error(fields: object, message: string): void; info(fields: object, message: string): void };
  readonly clock: Clock;
  /** Whether the error says that the database is unavailable. */
  readonly isUnavailable: (error: unknown) => boolean;
}

/** How often a line says that the database is still unavailable, in milliseconds. */
const remindEveryMs = 60_000;

/**
 * The log of background jobs. While the database is unavailable each of them fails every second, so that is one line at its
 * beginning, one with the count of failures each minute, and one at its end.
 */
export class FailureLog {
  readonly #parts: FailureLogDependencies;
  #outage: { since: number; said: number; failures: number; jobs: Set<string> } | undefined;

  constructor(parts: FailureLogDependencies) {
    this.#parts = parts;
  }

  /** Logs the failure of a job. */
  failed(job: string, error: unknown): void {
    const { logger, isUnavailable } = this.#parts;
    // The transactions of a group are refused with a 503 that has the error of the database as its cause.
    const cause = error instanceof ServiceError ? (error.cause ?? error) : error;
    if (!isUnavailable(cause)) {
      logger.error({ job, err: describeCause(error) }, 'job failed');
      return;
    }
    const err = describeBriefly(cause);
    const now = this.#now();
    if (this.#outage === undefined) {
      logger.error({ job, err }, 'database unavailable');
      this.#outage = { since: now, said: now, failures: 0, jobs: new Set() };
    }
    const outage = this.#outage;
    outage.jobs.add(job);
    outage.failures += 1;
    if (now - outage.said < remindEveryMs) return;
    outage.said = now;
    logger.error({ seconds: this.#secondsSince(outage.since), failures: outage.failures, err }, 'database still unavailable');
  }

  /** Ends an outage, if this job failed in it: a job that needs no database says nothing about it. */
  succeeded(job: string): void {
    const outage = this.#outage;
    if (outage?.jobs.has(job) !== true) return;
    this.#parts.logger.info({ seconds: this.#secondsSince(outage.since), failures: outage.failures }, 'database available again');
    this.#outage = undefined;
  }

  #now(): number {
    return this.#parts.clock().getTime();
  }

  #secondsSince(from: number): number {
    return Math.round((this.#now() - from) / 1000);
  }
}
