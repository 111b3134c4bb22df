import type { Condition, Provider } from '../model/chain.ts';
import type { Attempt } from '../model/test.ts';
import { type Engine, type Next, next, startAt } from '../rules/engine.ts';
import { faultAt, type Scene } from '../rules/plan.ts';
import { seeded } from '../rules/random.ts';
import type { FinishedPrompt } from '../rules/statistics.ts';
import type { CallResult, RunSignals, Transport } from './transport.ts';

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

/**
 * Runs a prompt through a chain with any transport: calls the current provider, and lets the engine decide after each
 * failure.
 * @throws the signal's reason if the run ends first; the prompt is then discarded
 */
export async function runPrompt(run: PromptRun): Promise<FinishedPrompt> {
  const { engine, transport, scene, index, prompt, seed, deadlineMs, signal, callSignal } = run;
  const { providers } = engine.chain;
  const random = seeded(seed, index);
  const clock = transport.begin(run);
  const position = startAt(engine);
  const circumstances = { random, elapsed_ms: 0, deadline_ms: deadlineMs };
  const attempts: Attempt[] = [];
  let nth = 0;
  for (;;) {
    const current = position.provider;
    const provider = providers[current]!;
    const start = clock.elapsed();
    const timeoutMs = deadlineMs === null ? provider.timeout_ms : Math.min(provider.timeout_ms, Math.max(deadlineMs - start, 1));
    const fault = scene.faults.length === 0 ? undefined : faultAt(scene, { provider: current, nth, prompt: index }, seed);
    let called = clock.call({ provider, prompt, timeoutMs, fault, random });
    if (called instanceof Promise) {
      called = await called;
      callSignal.throwIfAborted();
    }
    const elapsed = clock.elapsed();
    if (called.condition === null) {
      attempts.push(attemptOf(provider, called, start, elapsed, undefined));
      return { scene, end: null, result: promptResult(index, scene, attempts, elapsed, null) };
    }
    circumstances.elapsed_ms = elapsed;
    const step = next(engine, position, called, circumstances);
    attempts.push(attemptOf(provider, called, start, elapsed, step));
    if (step.end !== null) {
      const error = step.end === 'deadline' ? 'timeout' : called.condition;
      return { scene, end: step.end, result: promptResult(index, scene, attempts, elapsed, error) };
    }
    nth = step.action === 'retry' ? nth + 1 : 0;
    if (step.wait_ms > 0) {
      const waiting = clock.wait(step.wait_ms);
      if (waiting instanceof Promise) await waiting;
    }
    signal.throwIfAborted();
  }
}

/** Rounds to hundredths of a millisecond; more digits of a real clock are noise. */
function rounded(ms: number): number {
  // Simulated times are integers, which V8 stores without allocation.
  const whole = ms | 0;
  return whole === ms ? whole : Math.round(ms * 100) / 100;
}

function attemptOf(provider: Provider, called: CallResult, start: number, end: number, step: Next | undefined): Attempt {
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

function promptResult(
  index: number,
  scene: Scene,
  attempts: Attempt[],
  elapsed: number,
  error: Condition | null,
): FinishedPrompt['result'] {
  const last = attempts.at(-1)!;
  let retries = 0;
  let waits = 0;
  for (const { action, wait_ms } of attempts) {
    if (action === 'retry') retries += 1;
    waits += wait_ms;
  }
  return {
    index,
    scenario: scene.name,
    success: error === null,
    served_by: error === null ? last.provider : null,
    fallback_triggered: last.provider !== attempts[0]!.provider,
    retries_used: retries,
    total_wait_ms: waits,
    latency_ms: rounded(elapsed),
    error,
    attempts,
  };
}
