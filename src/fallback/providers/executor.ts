import type { Awaitable } from '../../kit/awaitable.ts';
import type { Condition, Provider } from '../model/chain.ts';
import type { Attempt } from '../model/test.ts';
import type { Failure } from '../rules/conditions.ts';
import { decide, type Engine, initialPosition, type NextStep, type Position } from '../rules/engine.ts';
import { endpointOf } from '../rules/kinds.ts';
import { faultAt, type InjectedFault, type Scene } from '../rules/plan.ts';
import { type Random, seeded } from '../rules/random.ts';
import { sentShape } from '../rules/received.ts';
import type { FinishedPrompt } from '../rules/statistics.ts';
import type { CallResult, PromptClock, RunSignals, Transport } from './transport.ts';

/** A prompt to run through a chain. */
export interface PromptRun extends RunSignals {
  readonly engine: Engine;
  readonly transport: Transport;
  readonly scene: Scene;
  readonly index: number;
  readonly prompt: string;
  /** Together with the index it determines faults with a probability, jitter and simulated latencies. */
  readonly seed: number;
  /** The longest duration of the prompt, end to end; null for no limit. */
  readonly deadlineMs: number | null;
}

/** What the prompts of a timeline share, by times in milliseconds from its start. */
export interface Shared {
  /** When the prompt starts. */
  readonly start: number;
  isOut(provider: number, at: number): boolean;
  /** The failure of a provider that is down. */
  faultAt(provider: number, at: number): InjectedFault | undefined;
  /** Remembers a failure. */
  failed(provider: number, failure: Failure, at: number): void;
}

/**
 * Runs a prompt through a chain with any transport: calls the current provider, and lets the engine decide after each
 * failure. It only returns a promise if the transport does.
 * @throws the signal's reason if the run ends first; the prompt is then discarded
 */
export function runPrompt(run: PromptRun): Awaitable<FinishedPrompt> {
  return follow(run, run.scene, run.index, run.prompt);
}

/** Runs a prompt of a run whose other parts are shared by all its prompts. */
export function follow(
  run: Omit<PromptRun, 'scene' | 'index' | 'prompt'>,
  scene: Scene,
  index: number,
  prompt: string,
): Awaitable<FinishedPrompt> {
  const walk = new Walk(run, scene, index, prompt);
  for (;;) {
    const called = walk.call();
    if (!('condition' in called)) return followCalls(walk, called);
    const done = walk.decide(called);
    if (done !== null) return done;
    const waiting = walk.wait();
    // Without a promise, nothing can abort the run in between.
    if (waiting !== undefined) return followCalls(walk, null, waiting);
  }
}

/** The rest of a prompt, from a call or a wait on. */
async function followCalls(walk: Walk, first: Promise<CallResult> | null, waiting?: Promise<void>): Promise<FinishedPrompt> {
  const { signal, callSignal } = walk.run;
  await waiting;
  if (first === null) signal.throwIfAborted();
  let called = first ?? walk.call();
  for (;;) {
    const result = await called;
    callSignal.throwIfAborted();
    const done = walk.decide(result);
    if (done !== null) return done;
    await walk.wait();
    signal.throwIfAborted();
    called = walk.call();
  }
}

/** A prompt on its way through a chain. */
export class Walk {
  readonly run: Omit<PromptRun, 'scene' | 'index' | 'prompt'>;
  readonly #scene: Scene;
  readonly #index: number;
  readonly #prompt: string;
  readonly #inputs: { random: Random; elapsed_ms: number; deadline_ms: number | null; isOut?: (provider: number) => boolean };
  readonly #shared: Shared | undefined;
  readonly #clock: PromptClock;
  readonly #position: Position;
  readonly #attempts: Attempt[] = [];
  #nth = 0;
  #start = 0;
  #waitMs = 0;

  constructor(run: Walk['run'], scene: Scene, index: number, prompt: string, position = initialPosition(run.engine), shared?: Shared) {
    this.run = run;
    this.#scene = scene;
    this.#index = index;
    this.#prompt = prompt;
    this.#inputs = { random: seeded(run.seed, index), elapsed_ms: 0, deadline_ms: run.deadlineMs };
    this.#clock = run.transport.begin(run);
    this.#position = position;
    this.#shared = shared;
    if (shared !== undefined) this.#inputs.isOut = (provider) => shared.isOut(provider, this.at());
  }

  /** The time of the timeline, or since the prompt started. */
  at(): number {
    return (this.#shared?.start ?? 0) + this.#clock.elapsed();
  }

  /** Calls the current provider. */
  call(): Awaitable<CallResult> {
    const { engine, deadlineMs, seed } = this.run;
    const current = this.#position.provider;
    const provider = engine.chain.providers[current]!;
    const start = this.#clock.elapsed();
    this.#start = start;
    const timeoutMs = deadlineMs === null ? provider.timeout_ms : Math.min(provider.timeout_ms, Math.max(deadlineMs - start, 1));
    const { faults, shape } = this.#scene;
    const planned = () => faultAt(this.#scene, { provider: current, nth: this.#nth, prompt: this.#index }, seed);
    const fault = faults.length === 0 ? this.#shared?.faultAt(current, this.at()) : planned();
    return this.#clock.call({ provider, prompt: this.#prompt, timeoutMs, fault, shape, random: this.#inputs.random });
  }

  /** Records a call; returns the finished prompt, or null if it continues. */
  decide(called: CallResult): FinishedPrompt | null {
    const { engine } = this.run;
    const provider = engine.chain.providers[this.#position.provider]!;
    const elapsed = this.#clock.elapsed();
    const attempts = this.#attempts;
    if (called.condition === null) {
      attempts.push(attemptOf(provider, called, this.#start, elapsed, undefined));
      return {
        scene: this.#scene,
        end: null,
        result: promptResult(this.#scene, this.#index, { attempts, elapsed, error: null, provider }),
      };
    }
    this.#inputs.elapsed_ms = elapsed;
    this.#shared?.failed(this.#position.provider, called, this.at());
    const step = decide(engine, this.#position, called, this.#inputs);
    attempts.push(attemptOf(provider, called, this.#start, elapsed, step));
    if (step.end !== null) {
      const error = step.end === 'deadline' ? 'timeout' : called.condition;
      return { scene: this.#scene, end: step.end, result: promptResult(this.#scene, this.#index, { attempts, elapsed, error, provider }) };
    }
    this.#nth = step.action === 'retry' ? this.#nth + 1 : 0;
    this.#waitMs = step.wait_ms;
    return null;
  }

  /** The wait before the next call. */
  wait(): Awaitable<void> {
    return this.#waitMs > 0 ? this.#clock.wait(this.#waitMs) : undefined;
  }
}

/** Rounds to hundredths of a millisecond; more digits of a real clock are noise. */
function rounded(ms: number): number {
  // Simulated times are integers, which V8 stores without allocation.
  const whole = ms | 0;
  return whole === ms ? whole : Math.round(ms * 100) / 100;
}

function attemptOf(provider: Provider, called: CallResult, start: number, end: number, step: NextStep | undefined): Attempt {
  return {
    provider: provider.name,
    model_id: provider.model_id,
    start_ms: rounded(start),
    latency_ms: rounded(end - start),
    status_code: called.status_code,
    condition: called.condition,
    action: step?.action ?? null,
    wait_ms: step?.wait_ms ?? 0,
    injected: called.injected,
    rule: step?.rule ?? null,
    error: called.error,
    cost_usd: costOf(provider, called),
  };
}

/** The cost of a call: 0 if it is not charged, null if the price or the tokens are unknown. */
function costOf({ input_cost_per_1m, output_cost_per_1m }: Provider, { charged, usage }: CallResult): number | null {
  if (!charged) return 0;
  if (usage === null || input_cost_per_1m === null || output_cost_per_1m === null) return null;
  return (usage.input_tokens * input_cost_per_1m + usage.output_tokens * output_cost_per_1m) / 1_000_000;
}

/** The result of a prompt that no provider was called for, because all are left out; LiteLLM answers 429 then. */
export const uncalled = (scene: Scene, index: number): FinishedPrompt => ({
  scene,
  end: 'exhausted',
  result: promptResult(scene, index, { attempts: [], elapsed: 0, error: 'rate_limit' }),
});

/** A prompt that has ended. */
interface Ended {
  readonly attempts: Attempt[];
  readonly elapsed: number;
  readonly error: Condition | null;
  /** The provider that was called last. */
  readonly provider?: Provider;
}

function promptResult({ shape, name }: Scene, index: number, { attempts, elapsed, error, provider }: Ended): FinishedPrompt['result'] {
  const last = attempts.at(-1);
  let retries = 0;
  let waits = 0;
  for (const { action, wait_ms } of attempts) {
    if (action === 'retry') retries += 1;
    waits += wait_ms;
  }
  return {
    index,
    scenario: name,
    success: error === null,
    served_by: error === null && last !== undefined ? last.provider : null,
    fallback_triggered: last?.provider !== attempts[0]?.provider,
    retries_used: retries,
    total_wait_ms: waits,
    latency_ms: rounded(elapsed),
    error,
    attempts,
    ...(shape === undefined ? {} : { request: { ...sentShape(shape), ...(provider && { endpoint: endpointOf(provider) }) } }),
  };
}
