import type { Provider } from '../model/chain.ts';
import { ofStream } from '../rules/conditions.ts';

/** Watches the pace of a streamed answer: aborts its call when the first content is late, or when it pauses for too long after that. */
export class StreamWatch {
  readonly #limits: Pick<Provider, 'first_token_ms' | 'idle_ms'>;
  readonly #ending = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #hasContent = false;
  #expired: (typeof ofStream)[keyof typeof ofStream] | null = null;

  /** Begins with the call. */
  constructor(limits: Pick<Provider, 'first_token_ms' | 'idle_ms'>) {
    this.#limits = limits;
    this.#wait(limits.first_token_ms, ofStream.late);
  }

  /** Aborts the call. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** Whether content has arrived. */
  get hasContent(): boolean {
    return this.#hasContent;
  }

  /** The failure by which the watch has aborted the call; null while it has not. */
  get expired(): (typeof ofStream)[keyof typeof ofStream] | null {
    return this.#expired;
  }

  /** Notes that a part of the answer has arrived, and whether the answer has content by now. */
  note(hasContent: boolean): void {
    if (!hasContent) return;
    this.#hasContent = true;
    this.#wait(this.#limits.idle_ms, ofStream.broken);
  }

  /** Ends the watch. */
  stop(): void {
    clearTimeout(this.#timer);
  }

  #wait(ms: number | null, condition: NonNullable<typeof this.expired>): void {
    clearTimeout(this.#timer);
    if (ms === null) return;
    this.#timer = setTimeout(() => {
      this.#expired = condition;
      this.#ending.abort();
    }, ms);
  }
}
