import type { Awaitable } from '../../kit/awaitable.ts';
import type { Provider } from '../model/chain.ts';
import type { Mode } from '../model/test.ts';
import type { Failure } from '../rules/conditions.ts';
import type { InjectedFault } from '../rules/plan.ts';
import type { Random } from '../rules/random.ts';
import type { Shape } from '../rules/shapes.ts';

/** The charged tokens of an answer. */
export interface Usage {
  readonly input_tokens: number;
  readonly output_tokens: number;
}

/** The result of a call: a failure, or an answer, whose condition is null. */
export type CallResult = (Failure | (Omit<Failure, 'condition'> & { readonly condition: null })) & {
  readonly injected: boolean;
  /** The error in a few words, without keys or text of the provider; null without an error. */
  readonly error: string | null;
  /** Whether the provider charges for the call, because an answer arrived. */
  readonly charged: boolean;
  /** Null if it was not reported. */
  readonly usage: Usage | null;
};

/** What results of failed calls have in common, unless they say otherwise. */
export const failed = { retry_after_ms: null, injected: false, charged: false, usage: null };

/** A call to make. */
export interface Call {
  readonly provider: Provider;
  readonly prompt: string;
  /** The timeout: the provider's, or the time left until the deadline. */
  readonly timeoutMs: number;
  readonly fault: InjectedFault | undefined;
  /** The shape of the request; undefined where none is sent. */
  readonly shape: Shape | undefined;
  readonly random: Random;
}

/** The clock of a prompt, for its calls and waits. */
export interface PromptClock {
  /** Milliseconds since the prompt started. */
  elapsed(): number;
  call(call: Call): Awaitable<CallResult>;
  /** Returns early if the run is cancelled. */
  wait(ms: number): Awaitable<void>;
}

/** What ends a run early. A stop of the service lets the calls in progress finish; a cancellation aborts both. */
export interface RunSignals {
  /** Aborts waits; no further call is made. */
  readonly signal: AbortSignal;
  /** Aborts the calls in progress. */
  readonly callSignal: AbortSignal;
}

/** Makes calls: simulated in virtual time, or real. */
export interface Transport {
  readonly mode: Mode;
  begin(signals: RunSignals): PromptClock;
}
