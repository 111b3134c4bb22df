import { setTimeout as sleep } from 'node:timers/promises';

/** A background job: `runOnce` does the work that is due and returns the milliseconds until its next round. */
interface LoopOptions {
  runOnce: () => Promise<number>;
  /** Called after a failed round; must not throw. The loop continues after `retryMs`. */
  onError: (error: unknown) => void;
  retryMs?: number;
  /** How long the first round waits after `start`, in milliseconds; 0 if left out. */
  firstAfterMs?: number;
}

/** A loop over `runOnce`, one round at a time. Tests call the same `runOnce` and never start the loop. */
export class Loop {
  readonly #parts: LoopOptions;
  #running: Promise<void> | undefined;
  #stopped = false;
  #pause = new AbortController();

  constructor(parts: LoopOptions) {
    this.#parts = parts;
  }

  start(): void {
    this.#running ??= this.#rounds();
  }

  /** Starts the next round now instead of at the end of the pause. */
  wake(): void {
    this.#pause.abort();
  }

  /** Waits for the current round. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#pause.abort();
    await this.#running;
  }

  async #rounds(): Promise<void> {
    const { runOnce, onError, retryMs = 1000, firstAfterMs = 0 } = this.#parts;
    if (firstAfterMs > 0) await this.#rest(firstAfterMs);
    while (!this.#stopped) {
      this.#pause = new AbortController();
      let waitMs = retryMs;
      try {
        waitMs = await runOnce();
      } catch (error) {
        onError(error);
      }
      if (this.#stopped) return;
      await this.#rest(waitMs);
    }
  }

  #rest(ms: number): Promise<void> {
    return sleep(ms, undefined, { signal: this.#pause.signal, ref: false }).catch(() => undefined);
  }
}
