import type { Condition, Provider } from '../model/chain.ts';
import { ofStream } from '../rules/conditions.ts';
import type { InjectedFault } from '../rules/plan.ts';
import { type Call, type CallResult, failed, type PromptClock, type Transport } from './transport.ts';

/** The assumed tokens of an answer. */
const assumedTokens = 200;

/** The mean latencies of answers and of failures with a response. */
const answerMs = 800;
const failureMs: Readonly<Record<Condition, number>> = {
  rate_limit: 60,
  timeout: 200,
  first_token_timeout: 200,
  server_error: 200,
  connection_error: 20,
  interrupted: 400,
  auth_error: 60,
  quota_exceeded: 60,
  model_not_found: 60,
  context_length: 80,
  content_filter: 300,
  unsupported_request: 60,
  invalid_request: 60,
  invalid_response: 400,
};

/** The assumptions of a simulation, as sentences. */
export const assumptions: readonly string[] = [
  `An answer takes ${answerMs / 2} to ${answerMs * 1.5} ms; with a timeout below ${answerMs * 2} ms, between a quarter and three quarters of the timeout.`,
  `An answer costs ${assumedTokens} input tokens and ${assumedTokens} output tokens, or max_tokens where that is less. A failed call costs nothing; an unusable answer costs as much as a usable one.`,
];

/** The transport of simulations: no requests are sent, and time is virtual. */
export const simulation: Transport = {
  mode: 'simulate',
  begin: () => new VirtualClock(1),
};

/** The transport of what a gateway should do with fake providers, which answer at once. */
export const instantSimulation: Transport = {
  mode: 'rehearsal',
  begin: () => new VirtualClock(0),
};

class VirtualClock implements PromptClock {
  #elapsed = 0;
  readonly #pace: number;

  /** @param pace the factor of latencies; with 0, every answer takes a millisecond */
  constructor(pace: 0 | 1) {
    this.#pace = pace;
  }

  elapsed(): number {
    return this.#elapsed;
  }

  call({ provider, timeoutMs, fault, random }: Call): CallResult {
    const took =
      fault === undefined
        ? spread(Math.min(answerMs, provider.timeout_ms / 2) * this.#pace, random())
        : faultLatency(fault, provider, timeoutMs, random(), this.#pace);
    if (took > timeoutMs || (fault !== undefined && isSilent(fault))) {
      this.#elapsed += Math.min(took, timeoutMs);
      return fault === undefined ? slow : silenced;
    }
    this.#elapsed += took;
    if (fault === undefined || fault.condition === null) return answerOf(provider, fault !== undefined);
    const { condition, status_code, retry_after_ms } = fault;
    const charged = status_code !== null && status_code < 300;
    const usage = charged ? assumedUsage(provider) : null;
    return { condition, status_code, retry_after_ms, injected: true, error: 'injected', charged, usage };
  }

  wait(ms: number): void {
    this.#elapsed += ms;
  }
}

/** The result of a call that times out, by its latency or by a fault. */
const slow: CallResult = { ...failed, condition: 'timeout', status_code: null, error: 'no answer in time' };
const silenced: CallResult = { ...slow, injected: true };

const answerOf = (provider: Provider, injected: boolean): CallResult => ({
  condition: null,
  status_code: 200,
  retry_after_ms: null,
  injected,
  error: null,
  charged: true,
  usage: assumedUsage(provider),
});

/** Whether a fault is a timeout without any response. */
const isSilent = ({ condition, status_code, latency_ms }: InjectedFault) =>
  condition === 'timeout' && status_code === null && latency_ms === null;

function faultLatency(fault: InjectedFault, { first_token_ms }: Provider, timeoutMs: number, random: number, pace: number): number {
  if (fault.latency_ms !== null) return fault.latency_ms;
  if (isSilent(fault)) return timeoutMs;
  if (fault.condition === ofStream.late) return Math.min(first_token_ms ?? timeoutMs, timeoutMs);
  return Math.min(spread(failureMs[fault.condition!] * pace, random), timeoutMs);
}

/** A random duration from half to one and a half of `ms`, in whole milliseconds, at least one. */
const spread = (ms: number, random: number) => Math.max(Math.round(ms * (0.5 + random)), 1);

function assumedUsage({ max_tokens }: Provider) {
  return { input_tokens: assumedTokens, output_tokens: Math.min(max_tokens ?? assumedTokens, assumedTokens) };
}
