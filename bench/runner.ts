import { createServer } from 'node:http';
import { request } from 'undici';

import { runPrompt } from '../src/fallback/providers/executor.ts';
import { createRealTransport } from '../src/fallback/providers/real.ts';
import { simulation } from '../src/fallback/providers/simulate.ts';
import { define } from '../src/fallback/rules/chain.ts';
import { createEngine, decide, type Engine, initialPosition, type NextStep } from '../src/fallback/rules/engine.ts';
import { faultAt, type Plan, planOf, sceneOf } from '../src/fallback/rules/plan.ts';
import { seeded } from '../src/fallback/rules/random.ts';
import { runTest } from '../src/fallback/service/runs.ts';
import { parseAllowList } from '../src/kit/outgoing/addresses.ts';
import { createGuard } from '../src/kit/outgoing/guard.ts';
import { Outgoing } from '../src/kit/outgoing/outgoing.ts';
import { listen } from '../test/support/listen.ts';
import { chainOf } from './chains.ts';
import { serveTasks } from './programs.ts';
import { type LoadResult, timesOf } from './times.ts';

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

const answer = JSON.stringify({
  choices: [{ message: { role: 'assistant', content: 'ready' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 12, completion_tokens: 3 },
});

/** Calls the provider at `base` with undici alone, one call at a time. */
function bareCalls(base: string, count: number): Promise<LoadResult> {
  const body = JSON.stringify({ model: 'model-0', messages: [{ role: 'user', content: 'Say hello.' }] });
  return timesOf(count, 1, async () => {
    const { statusCode, body: answered } = await request(`${base}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    });
    await answered.json();
    if (statusCode !== 200) throw new Error(`The provider answered ${statusCode}.`);
  });
}

/** The same calls as prompts of a drill without effective faults, including guard, deadline, executor and response parsing. */
async function drilledCalls(base: string, count: number): Promise<LoadResult> {
  const allow = parseAllowList(['127.0.0.1']);
  const outgoing = new Outgoing({ guard: createGuard({ allow, plainHttp: true, setting: 'SERVICE_LIVE_ALLOW' }) });
  const now = () => performance.now();
  const transport = createRealTransport({ mode: 'drill', outgoing, clock: () => new Date(), now, keyOf: () => undefined });
  const drilled = createEngine(define({ name: 'drill', providers: [{ name: 'a', model_id: 'model-0', api_base: base }] }));
  const [scene] = planOf(drilled, { mode: 'drill', preset: 'healthy' });
  const { signal } = new AbortController();
  const run = {
    engine: drilled,
    transport,
    scene: scene!,
    index: 0,
    prompt: 'Say hello.',
    seed,
    deadlineMs: null,
    signal,
    callSignal: signal,
  };
  const times = await timesOf(count, 1, async () => {
    const { result } = await runPrompt(run);
    if (!result.success) throw new Error(`The prompt failed: ${result.error}.`);
  });
  outgoing.close();
  return times;
}

const tasks = {
  /** How many attempts the plan takes on each side. They must be equal for a valid comparison. */
  attempts: async (_: null) => ({ bare: bareTest(), simulated: await simulatedTest() }),
  bareTests: (count: number) => timesOf(count, 1, async () => bareTest()),
  simulatedTests: (count: number) => timesOf(count, 1, simulatedTest),
  bareCalls: ({ base, count }: { base: string; count: number }) => bareCalls(base, count),
  drilledCalls: ({ base, count }: { base: string; count: number }) => drilledCalls(base, count),
  /** Starts a provider that always answers; returns its `api_base`. */
  async startProvider(_: null): Promise<string> {
    const server = createServer((incoming, response) => {
      incoming.resume();
      incoming.on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end(answer));
    });
    return `http://127.0.0.1:${await listen(server)}/v1`;
  },
};

/** Tasks that run chain tests without a service, and what these are compared with. */
export type RunnerTasks = typeof tasks;

serveTasks(tasks);
