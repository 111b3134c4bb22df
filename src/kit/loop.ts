import { setTimeout as sleep } from 'node:timers/promises';

/** A background job: `runOnce` does the work that is due and returns the milliseconds until its next round. */
export interface LoopParts {
  name: string;
  runOnce(): Promise<number>;
  /** Called after a failed round; must not throw. The loop continues after `retryMs`. */
  onError(error: unknown): void;
  retryMs?: number;
}

/** A background loop. `stop` waits for the current round. */
export interface Loop {
  start(): void;
  /** Starts the next round now instead of at the end of the pause. */
  wake(): void;
  stop(): Promise<void>;
}

/** A loop over `runOnce`, one round at a time. Tests call the same `runOnce` and never start the loop. */
export function createLoop({ runOnce, onError, retryMs = 1000 }: LoopParts): Loop {
  let running: Promise<void> | undefined;
  let stopped = false;
  let pause = new AbortController();

  async function rounds(): Promise<void> {
    while (!stopped) {
      pause = new AbortController();
      let waitMs = retryMs;
      try {
        waitMs = await runOnce();
      } catch (error) {
        onError(error);
      }
      if (stopped) return;
      await sleep(waitMs, undefined, { signal: pause.signal, ref: false }).catch(() => undefined);
    }
  }

  return {
    start() {
      running ??= rounds();
    },
    wake() {
      pause.abort();
    },
    async stop() {
      stopped = true;
      pause.abort();
      await running;
    },
  };
}
