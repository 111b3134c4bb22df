import Type, { type Static } from 'typebox';

import { choice, Id, orNull, timestamp } from '../../kit/schemas.ts';
import { actions, ChainDefinition, conditions, definitionExample, ruleConditions } from './chain.ts';
import { closed, count, exampleId, exampleTime, milliseconds, optional, rate, whole } from './common.ts';

export const modes = ['simulate', 'drill', 'live'] as const;
export const presets = ['coverage', 'healthy', 'primary_down', 'cascade', 'flap', 'blackout'] as const;
export const testStatuses = ['running', 'completed', 'failed', 'cancelled'] as const;
export const verdicts = ['pass', 'partial', 'safe', 'fail'] as const;

export type Mode = (typeof modes)[number];
export type Preset = (typeof presets)[number];
export type TestStatus = (typeof testStatuses)[number];
export type Verdict = (typeof verdicts)[number];

/** The most prompts of one test, and how many it has if the caller does not say. */
export const maxPrompts = 1000;
export const defaultPrompts = 5;
/** A seed is a whole number of 32 bits. */
export const maxSeed = 4_294_967_295;

/** A failure that is put in front of a provider. What is left out does not narrow it; what is given must all hold. */
export const Fault = Type.Object(
  {
    provider: Type.String({ maxLength: 256, description: 'The name of the provider that fails.' }),
    condition: optional(choice(conditions, { description: 'How it fails. May be left out where `latency_ms` is given.' })),
    times: optional(whole(1, 1_000, 'The first so many calls of each prompt.')),
    from: optional(whole(0, maxPrompts - 1, 'The first prompt, by index.')),
    to: optional(whole(0, maxPrompts - 1, 'The last prompt, by index, inclusive.')),
    probability: optional(Type.Number({ minimum: 0, maximum: 1, description: 'How likely each call fails.' })),
    status_code: optional(whole(100, 599, "The HTTP status it fails with; the condition's usual one if left out.")),
    retry_after_ms: optional(whole(0, 86_400_000, 'What it says in Retry-After.')),
    latency_ms: optional(whole(0, 3_600_000, "How long the call takes. Beyond the provider's `timeout_ms` it is a timeout by itself.")),
  },
  { ...closed, description: 'A failure that is put in front of a provider.' },
);

export const TestRequest = Type.Object(
  {
    prompt_count: optional(whole(1, maxPrompts, 'How many prompts. Left out: 5.')),
    mode: optional(
      choice(modes, {
        description:
          '`simulate`: no network, a virtual clock. `drill`: real calls, with faults injected in front of providers. `live`: real calls. Left out: `simulate`.',
      }),
    ),
    preset: optional(choice(presets, { description: 'Which plan of faults is run; `coverage` if left out. Not together with `faults`.' })),
    seed: optional(whole(0, maxSeed, 'The same seed gives the same simulation. Left out: drawn, and told in the result.')),
    faults: optional(
      Type.Array(Fault, { minItems: 1, maxItems: 100, description: 'The plan itself, applied to every prompt, instead of a preset.' }),
    ),
    prompts: optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 32_768 }), {
        minItems: 1,
        maxItems: maxPrompts,
        description: 'What is asked; the texts are used in turn.',
      }),
    ),
    deadline_ms: optional(whole(1, 3_600_000, 'How long one prompt may take, end to end; then it fails with `timeout`.')),
    stream: optional(Type.Boolean({ description: 'Whether real calls ask for a streaming answer. Left out: false.' })),
  },
  { ...closed, description: 'What is to be run.' },
);

const condition = choice(conditions, { description: 'What went wrong.' });

export const Attempt = Type.Object(
  {
    provider: Type.String({ description: 'Who was asked.' }),
    model_id: Type.String({ description: 'For which model.' }),
    start_ms: milliseconds('When it began, from the start of the prompt.'),
    latency_ms: milliseconds('How long it took.'),
    status_code: orNull(Type.Integer(), 'The HTTP status; null where none arrived.'),
    condition: orNull(condition, 'What went wrong; null where the provider answered.'),
    action: orNull(choice(actions), 'What the chain did then; null where the provider answered.'),
    wait_ms: milliseconds('The wait before the next attempt.'),
    injected: Type.Boolean({ description: 'Whether the plan put a failure or a delay there.' }),
    rule: orNull(Type.Integer({ minimum: 0 }), 'The rule that decided, by its place in `fallback_rules`; null for a default.'),
    error: orNull(Type.String(), 'What exactly went wrong, in a few words; null where nothing did.'),
    cost_usd: orNull(Type.Number({ minimum: 0 }), 'What it cost; null where a price or the tokens are unknown.'),
  },
  { ...closed, description: 'One call of one provider.' },
);

export const PromptResult = Type.Object(
  {
    index: Type.Integer({ minimum: 0, description: 'Its place in the test, from 0.' }),
    scenario: Type.String({ description: 'What the plan has for this prompt.' }),
    success: Type.Boolean({ description: 'Whether a provider answered.' }),
    served_by: orNull(Type.String(), 'Who answered.'),
    fallback_triggered: Type.Boolean({ description: 'Whether another than the first provider was asked.' }),
    retries_used: count('Retries, over all providers.'),
    total_wait_ms: milliseconds('Waits between attempts, together.'),
    latency_ms: milliseconds('End to end, failed attempts and waits included.'),
    error: orNull(condition, 'The condition it failed with; null where it was served.'),
    attempts: Type.Array(Attempt, { description: 'The calls in their order.' }),
  },
  { ...closed, description: 'What became of one prompt.' },
);

const latency = Object.fromEntries(
  (['min', 'avg', 'p50', 'p90', 'p95', 'p99', 'max'] as const).map((key) => [key, milliseconds(key)]),
) as Record<'min' | 'avg' | 'p50' | 'p90' | 'p95' | 'p99' | 'max', Type.TNumber>;

export const Check = Type.Object(
  {
    name: Type.String({ description: 'What is checked, for a program.', example: 'all_served' }),
    passed: Type.Boolean(),
    advisory: Type.Boolean({ description: 'Whether a failure only makes the verdict `partial`.' }),
    detail: Type.String({ description: 'What was found, in a sentence.' }),
  },
  { ...closed, description: 'One thing that the verdict rests on.' },
);

/** A test and what came of it; while it runs the figures are those of the prompts done. */
export const TestResult = Type.Object(
  {
    id: Id,
    chain_id: Id,
    chain_name: Type.String(),
    chain_version: Type.Integer({ minimum: 1 }),
    status: choice(testStatuses, {
      description:
        '`running`: also while it waits for its turn and, with several instances on one database, until the lease of an instance that died is over (30 s); its figures are then those of the prompts that were kept. `failed`: the run itself broke. `cancelled`: stopped, or cut off by a stop of the service.',
    }),
    error: orNull(Type.String(), 'Why the run itself broke or was cancelled.'),
    progress: Type.Object({ done: count('Prompts done.'), total: count('Prompts in all.') }, closed),
    mode: choice(modes),
    preset: orNull(choice(presets), 'The preset; null where the caller gave the faults or the mode takes none.'),
    seed: whole(0, maxSeed, 'What the simulation was drawn from.'),
    prompt_count: count('Prompts in all.'),
    deadline_ms: orNull(Type.Integer({ minimum: 1 }), 'How long one prompt may take.'),
    started_at: timestamp('When it was asked for.'),
    completed_at: orNull(timestamp('When it ended.')),
    duration_ms: orNull(milliseconds('How long the run took by the clock on the wall.')),
    success_count: count('Prompts served.'),
    failure_count: count('Prompts lost.'),
    success_rate: orNull(rate('Prompts served, over those done.')),
    fallback_count: count('Prompts served by another than the first provider.'),
    fallback_rate: orNull(rate('These over all prompts done.')),
    retry_count: count('Retries.'),
    attempts_total: count('Calls.'),
    latency_ms: orNull(Type.Object(latency, closed), 'Of prompts, end to end; null while none is done.'),
    added_latency_ms: orNull(Type.Number({ minimum: 0 }), 'The mean time before the attempt that served; null while none is served.'),
    cost_usd: Type.Object(
      {
        total: orNull(Type.Number({ minimum: 0 }), 'Of all attempts that were answered; null where a price or the tokens are unknown.'),
        wasted: orNull(Type.Number({ minimum: 0 }), 'Of answers that could not be used.'),
      },
      closed,
    ),
    assumptions: Type.Array(Type.String(), { description: 'What a simulation assumes; empty for real calls.' }),
    providers: Type.Array(
      Type.Object(
        {
          name: Type.String(),
          attempts: count('Calls.'),
          successes: count('Answers.'),
          failures: count('Failures.'),
          served: count('Prompts.'),
        },
        closed,
      ),
      { description: 'What each provider did.' },
    ),
    rules: Type.Array(
      Type.Object(
        {
          condition: choice(ruleConditions),
          action: choice(actions),
          hits: count('How many failures the rule decided.'),
          never_hit: Type.Boolean({ description: 'Whether it decided none.' }),
        },
        closed,
      ),
      { description: 'What each rule did, in the order of `fallback_rules`.' },
    ),
    verdict: orNull(
      choice(verdicts),
      '`pass`: all served, all checks hold. `partial`: all served, an advisory check fails. `safe`: a prompt lost, but as the rules say and bounded. `fail`: otherwise. Null until it has ended.',
    ),
    checks: Type.Array(Check, { description: 'What the verdict rests on; empty until it has ended.' }),
    chain: ChainDefinition,
    results: Type.Array(PromptResult, { description: 'The prompts done, in their order.' }),
  },
  { ...closed, description: 'A test and what came of it; while it runs the figures are those of the prompts done.' },
);

export type Fault = Static<typeof Fault>;
export type TestRequest = Static<typeof TestRequest>;
export type Attempt = Static<typeof Attempt>;
export type PromptResult = Static<typeof PromptResult>;
export type Check = Static<typeof Check>;
export type TestResult = Static<typeof TestResult>;

/** One event of a running test. */
export const TestProgress = Type.Object(
  {
    id: Id,
    status: choice(testStatuses),
    progress: TestResult.properties.progress,
    success_count: count('Prompts served.'),
    failure_count: count('Prompts lost.'),
    fallback_count: count('Prompts served by another than the first provider.'),
    verdict: TestResult.properties.verdict,
  },
  { ...closed, description: 'How far a test is.' },
);
export type TestProgress = Static<typeof TestProgress>;

const served = { model_id: 'anthropic/claude-sonnet-4-5', condition: null, action: null, rule: null, error: null, cost_usd: null };

/** A finished test, for examples. */
export const testExample: TestResult = {
  id: exampleId,
  chain_id: exampleId,
  chain_name: 'production-chain',
  chain_version: 1,
  status: 'completed',
  error: null,
  progress: { done: 1, total: 1 },
  mode: 'simulate',
  preset: 'primary_down',
  seed: 7,
  prompt_count: 1,
  deadline_ms: null,
  started_at: exampleTime,
  completed_at: exampleTime,
  duration_ms: 3,
  success_count: 1,
  failure_count: 0,
  success_rate: 1,
  fallback_count: 1,
  fallback_rate: 1,
  retry_count: 0,
  attempts_total: 2,
  latency_ms: { min: 820, avg: 820, p50: 820, p90: 820, p95: 820, p99: 820, max: 820 },
  added_latency_ms: 20,
  cost_usd: { total: null, wasted: null },
  assumptions: ['200 tokens in and 200 out for each answer.'],
  providers: [
    { name: 'gpt-4o', attempts: 1, successes: 0, failures: 1, served: 0 },
    { name: 'claude', attempts: 1, successes: 1, failures: 0, served: 1 },
  ],
  rules: [
    { condition: 'rate_limit', action: 'retry', hits: 0, never_hit: true },
    { condition: 'timeout', action: 'failover', hits: 0, never_hit: true },
  ],
  verdict: 'pass',
  checks: [{ name: 'all_served', passed: true, advisory: false, detail: 'The prompt was served.' }],
  chain: definitionExample,
  results: [
    {
      index: 0,
      scenario: 'gpt-4o is down',
      success: true,
      served_by: 'claude',
      fallback_triggered: true,
      retries_used: 0,
      total_wait_ms: 0,
      latency_ms: 820,
      error: null,
      attempts: [
        {
          ...served,
          provider: 'gpt-4o',
          model_id: 'openai/gpt-4o',
          start_ms: 0,
          latency_ms: 20,
          status_code: null,
          condition: 'connection_error',
          action: 'failover',
          wait_ms: 0,
          injected: true,
          error: 'connection refused',
        },
        { ...served, provider: 'claude', start_ms: 20, latency_ms: 800, status_code: 200, wait_ms: 0, injected: false },
      ],
    },
  ],
};
