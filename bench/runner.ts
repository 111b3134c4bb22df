import { simulation } from '../src/fallback/providers/simulate.ts';
import { define } from '../src/fallback/rules/chain.ts';
import { createEngine, decide, type Engine, initialPosition, type NextStep } from '../src/fallback/rules/engine.ts';
import { faultAt, type Plan, planOf, sceneOf } from '../src/fallback/rules/plan.ts';
import { seeded } from '../src/fallback/rules/random.ts';
import { runTest } from '../src/fallback/service/runs.ts';
import { chainOf } from './chains.ts';
import { serveTasks } from './programs.ts';
import { timesOf } from './times.ts';

/** The number of prompts in a simulated test. */
const prompts = 1000;
const seed = 1;

/** Only the engine's decisions on a prompt of the plan, one per failure. */
function decisionsOf(engine: Engine, plan: Plan, index: number): NextStep[] {
  const random = seeded(seed, index);
  const scene = sceneOf(plan, index);
  const position = initialPosition(engine);
  const decisions: NextStep[] = [];
  let nth = 0;
  for (;;) {
    const fault = faultAt(scene, { provider: position.provider, nth, prompt: index }, seed);
    if (fault === undefined || fault.condition === null) return decisions;
    const { condition, status_code, retry_after_ms } = fault;
    const step = decide(engine, position, { condition, status_code, retry_after_ms }, { random, elapsed_ms: 0, deadline_ms: null });
    decisions.push(step);
    if (step.end !== null) return decisions;
    nth = step.action === 'retry' ? nth + 1 : 0;
  }
}

const engine = createEngine(define(chainOf(0)));
const plan = planOf(engine, {});

/** A thousand prompts by the engine alone; returns the number of attempts. */
function bareTest(): number {
  let attempts = 0;
  for (let index = 0; index < prompts; index += 1) {
    const decisions = decisionsOf(engine, plan, index);
    // A successful attempt needs no decision.
    const isLost = decisions.length > 0 && decisions.at(-1)!.end !== null;
    attempts += decisions.length + (isLost ? 0 : 1);
  }
  return attempts;
}

/** The same thousand prompts as a test runs them, with a result each. */
async function simulatedTest(): Promise<number> {
  let attempts = 0;
  await runTest({
    engine,
    plan,
    transport: simulation,
    count: prompts,
    prompts: ['Say hello.'],
    seed,
    deadlineMs: null,
    signal: new AbortController().signal,
    callSignal: new AbortController().signal,
    onDone({ result }) {
      attempts += result.attempts.length;
    },
  });
  return attempts;
}

const tasks = {
  /** How many attempts the plan takes on each side. They must be equal for a valid comparison. */
  attempts: async (_: null) => ({ bare: bareTest(), simulated: await simulatedTest() }),
  bareTests: (count: number) => timesOf(count, 1, async () => bareTest()),
  simulatedTests: (count: number) => timesOf(count, 1, simulatedTest),
};

/** Tasks that run chain tests without a service, and what these are compared with. */
export type RunnerTasks = typeof tasks;

serveTasks(tasks);
