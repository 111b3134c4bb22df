import { setTimeout as sleep } from 'node:timers/promises';

import type { Provider } from '../model/chain.ts';
import type { SceneFault } from '../rules/plan.ts';
import { type CallParts, callProvider } from './calls.ts';
import type { Call, CallResult, PromptClock, RunSignals, Transport } from './transport.ts';

/** The dependencies of the real transport. */
export interface RealParts extends CallParts {
  mode: 'drill' | 'live';
  /** A monotonic clock, in milliseconds. */
  now(): number;
  /** The key of a provider's calls; undefined for none. */
  keyOf(provider: Provider): string | undefined;
  stream: boolean;
}

/**
 * Creates the transport of real calls. In a drill, a call that the plan makes fail is not sent: it takes the latency of
 * the fault and is marked as injected. All other figures of a drill are measured.
 */
export function createRealTransport(parts: RealParts): Transport {
  return { mode: parts.mode, begin: (signals) => new RealClock(parts, signals) };
}

class RealClock implements PromptClock {
  readonly #parts: RealParts;
  readonly #signals: RunSignals;
  readonly #begin: number;

  constructor(parts: RealParts, signals: RunSignals) {
    this.#parts = parts;
    this.#signals = signals;
    this.#begin = parts.now();
  }

  elapsed(): number {
    return this.#parts.now() - this.#begin;
  }

  call({ provider, prompt, timeoutMs, fault }: Call): Promise<CallResult> {
    return fault === undefined ? this.#ask(provider, prompt, timeoutMs) : this.#inject(fault, provider, prompt, timeoutMs);
  }

  /** Returns early if the run is cancelled, which the executor then checks. */
  async wait(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#signals.signal }).catch(() => undefined);
  }

  #ask(provider: Provider, prompt: string, timeoutMs: number): Promise<CallResult> {
    const { stream, keyOf } = this.#parts;
    return callProvider(this.#parts, { provider, prompt, key: keyOf(provider), stream, timeoutMs, signal: this.#signals.callSignal });
  }

  async #inject(fault: SceneFault, provider: Provider, prompt: string, timeoutMs: number): Promise<CallResult> {
    const { condition, status_code, retry_after_ms, latency_ms } = fault;
    if (latency_ms !== null) {
      await this.wait(Math.min(latency_ms, timeoutMs));
      this.#signals.signal.throwIfAborted();
      if (latency_ms > timeoutMs) return { ...injected, condition: 'timeout', status_code: null, retry_after_ms: null };
      if (condition === null) return { ...(await this.#ask(provider, prompt, Math.max(timeoutMs - latency_ms, 1))), injected: true };
    }
    return { ...injected, condition, status_code, retry_after_ms };
  }
}

const injected = { injected: true, error: 'injected', charged: false, usage: null };
