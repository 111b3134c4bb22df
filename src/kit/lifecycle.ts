/**
 * How long a stop may take before the process ends anyway, and how long it waits for requests that are still arriving and then for
 * attempts at sending, in milliseconds. These two leave time for the rest.
 */
export const stopLimits = { whole: 9_000, requests: 5_000, attempts: 2_000 } as const;

/** How long requests in progress may take after an unexpected error, in milliseconds. */
const failWithinMs = 2_000;

/**
 * Runs the steps of a start. Each passes what closes what it has opened; if a later one fails, all of it is closed, the last first.
 * @throws what the failed step threw
 */
export async function starting<T>(steps: (closeOnFailedStart: (close: () => unknown) => void) => Promise<T>): Promise<T> {
  const closes: (() => unknown)[] = [];
  try {
    return await steps((close) => {
      closes.push(close);
    });
  } catch (error) {
    for (const close of closes.reverse()) {
      try {
        await close();
      } catch {
        // The caller gets the first failure. A second one would hide it, and must not keep the rest open.
      }
    }
    throw error;
  }
}

/** A stop in steps. `onStep` is called with what each step waits for, for the sentence about a stop that takes too long. */
export type Stop = (onStep?: (waitsFor: string) => void) => Promise<void>;

/** A service whose process ends with it. */
interface Stoppable {
  /** Lets the callers go before a stop: says that it is not ready, and that connections close after their next response. */
  drain: () => void;
  /** How long it drains after a signal, in milliseconds; 0: not at all. */
  drainMs: number;
  /** Closes the listener, finishes requests in progress, then closes everything. */
  stop: Stop;
  /** Logs an error that no code expected. */
  onFatal: (error: unknown) => void;
}

/** The end of a process. `exit` ends it at once. */
export function createEnding({ stop, onFatal, drain, drainMs }: Stoppable, exit: (code: number) => void) {
  let stopped: Promise<unknown> | undefined;
  let failed = false;
  let waitsFor = 'its beginning';
  let draining: NodeJS.Timeout | undefined;
  /** Resolves with the error of the stop, if it failed. */
  const stopOnce = () =>
    (stopped ??= stop((step) => {
      waitsFor = step;
    }).then(
      () => undefined,
      (error: unknown) => error ?? new Error('The stop failed.'),
    ));
  const terminate = (): void => {
    if (stopped !== undefined) return;
    clearTimeout(draining);
    setTimeout(() => {
      console.error(`The stop took more than ${stopLimits.whole / 1000} seconds. It still waited for ${waitsFor}.`);
      exit(1);
    }, stopLimits.whole).unref();
    stopOnce()
      .then((error) => {
        if (error !== undefined) console.error(`The stop failed: ${error instanceof Error ? error.message : String(error)}`);
        exit(error === undefined && !failed ? 0 : 1);
      })
      .catch(() => exit(1));
  };
  return {
    /**
     * Drains, then stops the service and exits 0; after nine seconds of the stop, or if it fails, says why and exits 1.
     * A second call ends the draining; further calls do nothing.
     */
    terminate: (): void => {
      if (drainMs === 0 || draining !== undefined) {
        terminate();
        return;
      }
      draining = setTimeout(terminate, drainMs);
      drain();
    },
    /** Logs the error as fatal, closes the listener, gives requests in progress up to two seconds, and exits 1. */
    fail: (error: unknown): void => {
      onFatal(error);
      if (failed) return;
      failed = true;
      setTimeout(() => exit(1), failWithinMs);
      stopOnce()
        .then(() => exit(1))
        .catch(() => exit(1));
    },
  };
}

/**
 * Ends the process at SIGTERM or SIGINT, when its supervising parent process is gone, and at an exception or a rejected
 * promise that no code handled: the state of the process is then unknown, so a supervisor should restart it.
 */
export function endWithProcess(service: Stoppable): void {
  const { terminate, fail } = createEnding(service, (code) => process.exit(code));
  for (const event of ['SIGTERM', 'SIGINT', 'disconnect']) process.on(event, terminate);
  // Node passes unhandled rejections to this event too.
  process.on('uncaughtException', fail);
}
