import { setTimeout as sleep } from 'node:timers/promises';

import type { Provider } from '../model/chain.ts';
import type { InjectedFault } from '../rules/plan.ts';
import { plainShape } from '../rules/shapes.ts';
import { type CallDependencies, callProvider } from './calls.ts';
import type { Call, CallResult, Transport } from './transport.ts';

/** The dependencies of the real transport. */
export interface RealDependencies extends CallDependencies {
  mode: 'drill' | 'live';
  /** A monotonic clock, in milliseconds. */
  now: () => number;
  /** The key of a provider's calls; undefined for none. */
  keyOf: (provider: Provider) => string | undefined;
}

/**
 * Creates the transport of real calls. In a drill, a call that the plan makes fail is not sent: it takes the latency of
 * the fault and is marked as injected. All other figures of a drill are measured.
 */
export function createRealTransport(parts: RealDependencies): Transport {
  const { mode, now, keyOf } = parts;
  return {
    mode,
    begin({ signal, callSignal }) {
      const begin = now();
      // It returns early if the run is cancelled, which the executor then checks.
      const wait = (ms: number): Promise<void> => sleep(ms, undefined, { signal }).catch(() => undefined);
      const ask = ({ provider, prompt, shape = plainShape }: Call, timeoutMs: number) =>
        callProvider(parts, { provider, prompt, key: keyOf(provider), shape, timeoutMs, signal: callSignal });

      async function inject({ condition, status_code, retry_after_ms, latency_ms }: InjectedFault, call: Call): Promise<CallResult> {
        const { timeoutMs } = call;
        if (latency_ms !== null) {
          await wait(Math.min(latency_ms, timeoutMs));
          signal.throwIfAborted();
          if (latency_ms > timeoutMs) return { ...injected, condition: 'timeout', status_code: null, retry_after_ms: null };
          if (condition === null) return { ...(await ask(call, Math.max(timeoutMs - latency_ms, 1))), injected: true };
        }
        return { ...injected, condition, status_code, retry_after_ms };
      }

      return {
        elapsed: () => now() - begin,
        call: (call) => (call.fault === undefined ? ask(call, call.timeoutMs) : inject(call.fault, call)),
        wait,
      };
    },
  };
}

const injected = { injected: true, error: 'injected', charged: false, usage: null };
