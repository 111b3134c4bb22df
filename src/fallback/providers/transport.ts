import type { Awaitable } from '../../kit/awaitable.ts';
import type { Provider } from '../model/chain.ts';
import type { Mode } from '../model/test.ts';
import type { Outcome } from '../rules/conditions.ts';
import type { SceneFault } from '../rules/plan.ts';
import type { Random } from '../rules/random.ts';

/** Tokens that an answer was charged for. */
export interface Usage {
  readonly input_tokens: number;
  readonly output_tokens: number;
}

/** What came of a call. */
export interface CallResult extends Outcome {
  readonly injected: boolean;
  /** What exactly went wrong, in a few words that hold no key and nothing a provider wrote; null where nothing did. */
  readonly error: string | null;
  /** Whether the provider charges for it: an answer arrived, of use or not. */
  readonly charged: boolean;
  /** Null where it was not told. */
  readonly usage: Usage | null;
}

/** A call to be made. */
export interface Call {
  readonly provider: Provider;
  readonly prompt: string;
  /** How long it may take: the provider's time-out, or what is left until the deadline. */
  readonly timeoutMs: number;
  /** The failure that the plan puts in front of the provider, if any. */
  readonly fault: SceneFault | undefined;
  readonly random: Random;
}

/** One prompt on its way: calls and waits take their time by a clock of its own. */
export interface PromptClock {
  /** Milliseconds since the prompt began. */
  elapsed(): number;
  call(call: Call): Awaitable<CallResult>;
  /** Ends early when the run is cancelled. */
  wait(ms: number): Awaitable<void>;
}

/** How calls are made: simulated on a virtual clock, or really. */
export interface Transport {
  readonly mode: Mode;
  /** Begins a prompt; `signal` ends its calls and waits. */
  begin(signal: AbortSignal): PromptClock;
}
