import { setTimeout as sleep } from 'node:timers/promises';

/** Work that happens unasked: `runOnce` does what is due and gives the milliseconds until it wants to be called again. */
export interface LoopParts {
  name: string;
  runOnce(): Promise<number>;
  /** Told of a failed round; must not fail. The loop goes on after `retryMs`. */
  onError(error: unknown): void;
  retryMs?: number;
}

/** A background loop. `stop` waits for the round in hand. */
export interface Loop {
  start(): void;
  /** Runs the next round now instead of when its pause is over. */
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
