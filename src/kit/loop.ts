import { setTimeout as sleep } from 'node:timers/promises';

/** A background job: `runOnce` does the work that is due and returns the milliseconds until its next round. */
interface LoopParts {
  runOnce(): Promise<number>;
  /** Called after a failed round; must not throw. The loop continues after `retryMs`. */
  onError(error: unknown): void;
  retryMs?: number;
  /** How long the first round waits after `start`, in milliseconds; 0 if left out. */
  firstAfterMs?: number;
}

/** A loop over `runOnce`, one round at a time. Tests call the same `runOnce` and never start the loop. */
export function createLoop({ runOnce, onError, retryMs = 1000, firstAfterMs = 0 }: LoopParts) {
  let running: Promise<void> | undefined;
  let stopped = false;
  let pause = new AbortController();

  const rest = (ms: number) => sleep(ms, undefined, { signal: pause.signal, ref: false }).catch(() => undefined);

  async function rounds(): Promise<void> {
    if (firstAfterMs > 0) await rest(firstAfterMs);
    while (!stopped) {
      pause = new AbortController();
      let waitMs = retryMs;
      try {
        waitMs = await runOnce();
      } catch (error) {
        onError(error);
      }
      if (stopped) return;
      await rest(waitMs);
    }
  }

  return {
    start(): void {
      running ??= rounds();
    },
    /** Starts the next round now instead of at the end of the pause. */
    wake(): void {
      pause.abort();
    },
    /** Waits for the current round. */
    async stop(): Promise<void> {
      stopped = true;
      pause.abort();
      await running;
    },
  };
}
