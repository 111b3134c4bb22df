import { nextTurn } from '../../kit/awaitable.ts';
import { follow, type PromptRun } from '../providers/executor.ts';
import { type Plan, sceneOf } from '../rules/plan.ts';
import type { FinishedPrompt } from '../rules/statistics.ts';

/** A test to run. */
export interface Run extends Omit<PromptRun, 'scene' | 'index' | 'prompt'> {
  readonly plan: Plan;
  readonly count: number;
  /** How many prompts run at a time; by default 1. */
  readonly atOnce?: number;
  /** Runs a prompt otherwise than through the chain's engine. */
  readonly play?: (run: PromptRun) => Promise<FinishedPrompt>;
  /** The prompts, used in turn. */
  readonly prompts: readonly string[];
  /** Called for each finished prompt, and awaited, so that storing keeps up. */
  onDone(done: FinishedPrompt): void | Promise<void>;
}

/** How many attempts are simulated before yielding to the event loop. */
const attemptsPerTurn = 500;

/**
 * Runs all prompts of a test.
 * @throws the signal's reason if it is cancelled
 */
export async function runTest(run: Run): Promise<void> {
  const { count, atOnce = 1, play, plan, prompts, signal, transport } = run;
  let next = 0;
  let attempts = 0;
  let hasFailed = false;
  async function work(): Promise<void> {
    while (next < count && !hasFailed) {
      signal.throwIfAborted();
      const index = next;
      next += 1;
      const scene = sceneOf(plan, index);
      const prompt = prompts[index % prompts.length]!;
      let done = play === undefined ? follow(run, scene, index, prompt) : play({ ...run, scene, index, prompt });
      if (done instanceof Promise) done = await done;
      attempts += done.result.attempts.length;
      const kept = run.onDone(done);
      if (kept !== undefined) await kept;
      if (transport.mode === 'simulate' && attempts >= attemptsPerTurn) {
        attempts = 0;
        await nextTurn();
      }
    }
  }
  const workers = Array.from({ length: Math.min(atOnce, count) }, () =>
    work().catch((error: unknown) => {
      hasFailed = true;
      throw error;
    }),
  );
  // The calls in progress of the other workers are finished first.
  await Promise.allSettled(workers);
  await Promise.all(workers);
}
