import Type, { type Static } from 'typebox';

import { choice, described, Id, object, orNull, timestamp } from '../../kit/schemas.ts';
import { actions, ChainDefinition, conditions, definitionExample, ruleConditions } from './chain.ts';
import { count, exampleId, exampleTime, milliseconds, optional, rate, whole } from './common.ts';
import { Finding } from './finding.ts';
import { Agreement, Difference, Expected, Gateway } from './rehearsal.ts';
import { Received, RequestShape, SentShape } from './request.ts';
import { Outage, Timeline, TimelineRequest, TimelineSecond } from './timeline.ts';

export const modes = ['simulate', 'drill', 'live', 'rehearsal'] as const;
export const presets = ['coverage', 'healthy', 'primary_down', 'cascade', 'flap', 'blackout', 'streams'] as const;
export const testStatuses = ['running', 'completed', 'failed', 'cancelled'] as const;
export const verdicts = ['pass', 'partial', 'lost_as_ruled', 'fail', 'differs'] as const;

export type Mode = (typeof modes)[number];
export type Preset = (typeof presets)[number];
export type TestStatus = (typeof testStatuses)[number];
export type Verdict = (typeof verdicts)[number];

/** The maximum and the default number of prompts of a test. */
export const maxPrompts = 1000;
export const defaultPrompts = 5;
/** The most calls that the prompts of a test can make, if every one of them takes the worst case. */
export const maxCalls = 100_000;
/** A seed is a whole number of 32 bits. */
export const maxSeed = 4_294_967_295;

/** An injected failure of a provider. It applies to calls that match all given fields. */
export const InjectedFaultRequest = described('An injected failure of a provider.', {
  provider: Type.String({ maxLength: 256, description: 'The name of the provider that fails.' }),
  condition: optional(choice(conditions, { description: 'How it fails. Optional with `latency_ms`.' })),
  times: optional(whole(1, 1_000, 'Applies to the first n calls of each prompt.')),
  from: optional(whole(0, maxPrompts - 1, 'The index of the first affected prompt.')),
  to: optional(whole(0, maxPrompts - 1, 'The index of the last affected prompt, inclusive.')),
  probability: optional(Type.Number({ minimum: 0, maximum: 1, description: 'The probability that a call fails.' })),
  status_code: optional(whole(100, 599, "The HTTP status it fails with. Default: the condition's usual status.")),
  retry_after_ms: optional(whole(0, 86_400_000, 'The value of Retry-After.')),
  latency_ms: optional(whole(0, 3_600_000, "How long the call takes. Beyond the provider's `timeout_ms` it is a timeout.")),
  after_chunks: optional(whole(0, 100, 'The parts of content that a stream sends before it goes wrong; 0: none. Default: 1.')),
  stall_ms: optional(
    whole(
      1,
      3_600_000,
      'How long a stream is silent behind these parts; then it goes on. Beyond `first_token_ms` or `idle_ms` it is a failure, which then need not be named.',
    ),
  ),
  error_event: optional(Type.Boolean({ description: 'Whether the stream ends with an error event.' })),
  malformed_chunk: optional(Type.Boolean({ description: 'Whether a part of the stream is no JSON; the others follow it.' })),
  cut_tool_call: optional(Type.Boolean({ description: 'Whether the stream ends within the arguments of a tool. It needs `tools`.' })),
  no_final_event: optional(Type.Boolean({ description: 'Whether the stream ends, as it should, but without its final event.' })),
});

export const TestRequest = described('The test to run.', {
  prompt_count: optional(
    whole(
      1,
      maxPrompts,
      `The number of prompts. Default: that of \`prompts\`, else that of the scenes of the plan, else ${defaultPrompts}.`,
    ),
  ),
  mode: optional(
    choice(modes, {
      description:
        '`simulate`: no network, virtual time. `drill`: real calls with injected faults. `live`: real calls. `rehearsal`: a gateway calls fake providers, which fail as planned, and is compared with the chain. Default: `simulate`.',
    }),
  ),
  preset: optional(choice(presets, { description: 'The plan of faults. Default: `coverage`. Not together with `faults`.' })),
  seed: optional(whole(0, maxSeed, 'The same seed gives the same simulation. Default: random; the result has it.')),
  faults: optional(
    Type.Array(InjectedFaultRequest, {
      minItems: 1,
      maxItems: 100,
      description: 'The plan of faults for every prompt, instead of a preset.',
    }),
  ),
  timeline: optional(TimelineRequest),
  prompts: optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 32_768 }), {
      minItems: 1,
      maxItems: maxPrompts,
      description: 'The prompts, used in turn.',
    }),
  ),
  deadline_ms: optional(whole(1, 3_600_000, 'The longest duration of a prompt, end to end; then it fails with `timeout`.')),
  stream: optional(Type.Boolean({ description: 'The same as `request.stream`, for real calls.' })),
  request: optional(RequestShape),
  gateway: optional(Gateway),
});

/** What a test would do. */
export const TestPlan = described('What a test would do at most, without starting it.', {
  mode: choice(modes),
  preset: orNull(choice(presets), 'The preset; null if the request has faults or the mode takes none.'),
  prompt_count: count('All prompts.'),
  max_calls: count('The maximum number of calls of providers, injected failures included.'),
  max_calls_per_prompt: count('The maximum number of calls for one prompt.'),
});

const condition = choice(conditions, { description: 'The failure.' });

export const Attempt = described('A call of a provider.', {
  provider: Type.String({ description: 'The provider that was called.' }),
  model_id: Type.String({ description: 'The model.' }),
  start_ms: milliseconds('When it started, relative to the start of the prompt.'),
  latency_ms: milliseconds('How long it took.'),
  status_code: orNull(Type.Integer(), 'The HTTP status; null without a response.'),
  condition: orNull(condition, 'The failure; null if the provider answered.'),
  action: orNull(choice(actions), 'The next action of the chain; null if the provider answered.'),
  wait_ms: milliseconds('The wait before the next attempt.'),
  injected: Type.Boolean({ description: 'Whether the plan injected a failure or a delay.' }),
  rule: orNull(Type.Integer({ minimum: 0 }), 'The index in `fallback_rules` of the rule that decided; null for a default.'),
  error: orNull(Type.String(), 'The error in a few words; null without an error.'),
  cost_usd: orNull(Type.Number({ minimum: 0 }), 'The cost; null if the price or the tokens are unknown.'),
});

export const PromptResult = described('The result of a prompt.', {
  index: Type.Integer({ minimum: 0, description: 'The index in the test, from 0.' }),
  scenario: Type.String({ description: 'The scenario of the plan for this prompt.' }),
  success: Type.Boolean({ description: 'Whether a provider answered.' }),
  served_by: orNull(Type.String(), 'Who answered.'),
  fallback_triggered: Type.Boolean({ description: 'Whether another provider than the first was called.' }),
  retries_used: count('Retries at all providers.'),
  total_wait_ms: milliseconds('Total wait between attempts.'),
  latency_ms: milliseconds('End to end, including failed attempts and waits.'),
  error: orNull(condition, 'The final failure; null if the prompt was served.'),
  attempts: Type.Array(Attempt, { description: 'The first calls, in order: at most 100, and at most 16 MiB in a result.' }),
  request: Type.Optional(SentShape),
  received: Type.Optional(Received),
  expected: Type.Optional(Expected),
  agrees: Type.Optional(
    Type.Boolean({ description: 'With the mode `rehearsal`: whether the gateway did what the chain says. Waits are not compared.' }),
  ),
  tested: Type.Optional(
    Type.Boolean({
      description:
        'With the mode `rehearsal` without a timeline: false if a call should have failed and none did, so that agreement says nothing.',
    }),
  ),
  attempts_omitted: Type.Optional(count('The number of further calls, whose details are left out. Absent if there are none.')),
});

const latency = Object.fromEntries(
  (['min', 'avg', 'p50', 'p90', 'p95', 'p99', 'max'] as const).map((key) => [key, milliseconds(key)]),
) as Record<'min' | 'avg' | 'p50' | 'p90' | 'p95' | 'p99' | 'max', Type.TNumber>;

export const Check = described('A check behind the verdict.', {
  name: Type.String({ description: 'The name of the check.', example: 'all_served' }),
  passed: Type.Boolean(),
  advisory: Type.Boolean({ description: 'Whether a failure only makes the verdict `partial`.' }),
  detail: Type.String({ description: 'The finding as a sentence.' }),
});

export const TestResult = described('A test and its result. While it runs, the figures cover the finished prompts.', {
  id: Id,
  chain_id: Id,
  chain_name: Type.String(),
  chain_version: Type.Integer({ minimum: 1 }),
  status: choice(testStatuses, {
    description:
      '`running`: also while it waits in the queue and, with several instances on one database, until the lease of a dead instance expires (30 s); the figures then cover the stored prompts. `failed`: the run itself failed. `cancelled`: stopped by a caller or by a stop of the service.',
  }),
  error: orNull(Type.String(), 'Why the run failed or was cancelled, or why a gateway gave no answers.'),
  progress: object({ done: count('Finished prompts.'), total: count('All prompts.') }),
  mode: choice(modes),
  preset: orNull(choice(presets), 'The preset; null if the request has faults or the mode takes none.'),
  seed: whole(0, maxSeed, 'The seed of the simulation.'),
  prompt_count: count('All prompts.'),
  deadline_ms: orNull(Type.Integer({ minimum: 1 }), 'The longest duration of a prompt.'),
  started_at: timestamp('When the test was requested.'),
  completed_at: orNull(timestamp('When the test ended.')),
  duration_ms: orNull(milliseconds('How long the run took in real time.')),
  success_count: count('Prompts served.'),
  failure_count: count('Prompts lost.'),
  success_rate: orNull(rate('Served prompts, of the finished ones.')),
  fallback_count: count('Prompts not served by the first provider.'),
  fallback_rate: orNull(rate('Their share of the finished prompts.')),
  retry_count: count('Retries.'),
  attempts_total: count('Calls.'),
  latency_ms: orNull(object(latency), 'Of prompts, end to end; null if none is finished.'),
  added_latency_ms: orNull(Type.Number({ minimum: 0 }), 'The mean time before the successful attempt; null if no prompt is served.'),
  cost_usd: object({
    total: orNull(Type.Number({ minimum: 0 }), 'Of all answered attempts; null if a price or the tokens are unknown.'),
    wasted: orNull(Type.Number({ minimum: 0 }), 'Of unusable answers.'),
  }),
  assumptions: Type.Array(Type.String(), { description: 'Assumptions of a simulation; empty for real calls.' }),
  providers: Type.Array(
    object({
      name: Type.String(),
      attempts: count('Calls.'),
      successes: count('Answers.'),
      failures: count('Failures.'),
      served: count('Prompts.'),
    }),
    { description: 'Figures of each provider.' },
  ),
  rules: Type.Array(
    object({
      condition: choice(ruleConditions),
      action: choice(actions),
      hits: count('The number of failures that the rule decided.'),
      never_hit: Type.Boolean({ description: 'Whether the rule decided none.' }),
    }),
    { description: 'Figures of each rule, in the order of `fallback_rules`.' },
  ),
  verdict: orNull(
    choice(verdicts),
    '`pass`: all prompts served, all checks passed. `partial`: all served, an advisory check failed. `lost_as_ruled`: a prompt was lost, but as the rules say and within the bounds; it is no pass. `fail`: otherwise. `differs`: the gateway of a rehearsal does not do what the chain says. Null until the test has ended.',
  ),
  checks: Type.Array(Check, { description: 'The checks behind the verdict; empty until the test has ended.' }),
  agreement: Type.Optional(Agreement),
  differences: Type.Optional(Type.Array(Difference, { description: 'With the mode `rehearsal`: what the gateway does otherwise.' })),
  timeline: Type.Optional(
    orNull(Timeline, 'With a timeline: what happened in each second; in a rehearsal what the gateway did. Null until the test has ended.'),
  ),
  expected_timeline: Type.Optional(
    orNull(Timeline, 'With a timeline in a rehearsal: what the chain alone says, by simulation. Null until the test has ended.'),
  ),
  chain: ChainDefinition,
  findings: Type.Array(Finding, {
    description:
      'The findings of the import about a condition, of a provider or of none in particular, and about cool-downs, as they were at the start. In a rehearsal of an export what that does otherwise than the chain.',
  }),
  results: Type.Array(PromptResult, { description: 'The finished prompts, in order.' }),
});

export type InjectedFaultRequest = Static<typeof InjectedFaultRequest>;
export type TestPlan = Static<typeof TestPlan>;
export type TestRequest = Static<typeof TestRequest>;
export type Attempt = Static<typeof Attempt>;
export type PromptResult = Static<typeof PromptResult>;
export type Check = Static<typeof Check>;
export type TestResult = Static<typeof TestResult>;

/** An event of a running test. */
export type TestProgress = Pick<
  TestResult,
  'id' | 'status' | 'progress' | 'success_count' | 'failure_count' | 'fallback_count' | 'verdict'
>;

const served = { model_id: 'anthropic/claude-sonnet-4-5', condition: null, action: null, rule: null, error: null, cost_usd: null };

/** An example of a finished test. */
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
  findings: [],
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

/** The schemas of tests that the API description names. */
export const testSchemas = {
  InjectedFaultRequest,
  RequestShape,
  Received,
  Outage,
  TimelineRequest,
  TimelineSecond,
  Timeline,
  TestRequest,
  Attempt,
  PromptResult,
  Check,
  TestResult,
};
