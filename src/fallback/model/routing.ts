import Type, { type Static } from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { choice, described, IdParams, object, orNull } from '../../kit/schemas.ts';
import { actions, Cooldown, conditions } from './chain.ts';
import { count, failing, milliseconds, Warning, whole } from './common.ts';
import { Finding } from './finding.ts';
import { defineRoute } from './route.ts';

const sources = ['rule', 'default'] as const;
const steps = ['retry', 'failover', 'fail', 'serve'] as const;

/** The decision of a rule or default about a failure. */
const decided = {
  action: choice(actions, { description: 'The first action.' }),
  max_retries: count('Extra attempts at this provider.'),
  next_provider: orNull(Type.String(), 'The provider that is tried next; null if the prompt fails.'),
  source: choice(sources, { description: 'Whether a rule of the chain or a default decides.' }),
  rule: orNull(Type.Integer({ minimum: 0 }), "The rule's index in `fallback_rules`; null for a default."),
};

export const Decision = described('What the chain does if a provider fails with a condition.', {
  condition: choice(conditions, { description: 'The failure.' }),
  ...decided,
  exceptions: Type.Array(object({ status_code: Type.Integer({ description: 'The HTTP status with a different decision.' }), ...decided }), {
    description: 'HTTP statuses of this condition for which another rule decides.',
  }),
  findings: Type.Array(Finding, {
    description: 'The findings of the import about this condition, of this provider or of none in particular.',
  }),
});

export const WorstCase = described('The upper bounds of a prompt, however the providers behave.', {
  attempts: count('The maximum number of attempts of a prompt.'),
  latency_ms: milliseconds('The longest duration of a prompt, including timeouts and waits.'),
  first_token_ms: milliseconds('The longest time of a streamed prompt until its first content, by `first_token_ms` of the providers.'),
});

export const Step = described('A step in the path of a prompt.', {
  provider: Type.String({ description: 'The provider that is called.' }),
  attempt: whole(1, 1_000, 'The number of the attempt at this provider, from 1.'),
  condition: orNull(choice(conditions), 'How it fails; null if it answers.'),
  action: choice(steps, { description: 'The next action.' }),
  wait_ms: milliseconds('The longest wait before the next step, without Retry-After.'),
  source: orNull(choice(sources), 'Whether a rule or a default decides; null if the provider answers.'),
  rule: orNull(Type.Integer({ minimum: 0 }), "The rule's index in `fallback_rules`."),
});

export const Question = described('The question that `path` answers.', {
  provider: Type.String({ description: 'The provider that always fails.' }),
  condition: choice(conditions, { description: 'How it fails.' }),
  status_code: orNull(Type.Integer(), 'The HTTP status it fails with; null without a response.'),
  served_by: orNull(Type.String(), 'The provider that finally answers; null if the prompt fails.'),
});

export const Routing = described("The chain's decisions for all failures of all providers.", {
  order: Type.Array(Type.String(), { description: 'The names of the providers, in order.' }),
  providers: Type.Array(
    object({
      name: Type.String(),
      cooldown: orNull(Cooldown, "The cool-down that holds for this provider: its own, else the chain's; null without one."),
      decisions: Type.Array(Decision),
    }),
    {
      description: 'The decision for each provider and each condition.',
    },
  ),
  worst_case: WorstCase,
  warnings: Type.Array(Warning),
  question: orNull(Question),
  path: orNull(Type.Array(Step), 'The steps from the provider in the question on; null without a question.'),
});

/** The query of routing: `provider` and `condition` are only allowed together. */
export const RoutingQuery = object({
  provider: Type.Optional(Type.String({ maxLength: 256, description: 'Asks what happens if this provider fails ...', example: 'gpt-4o' })),
  condition: Type.Optional(choice(conditions, { description: '... in this way.', example: 'rate_limit' })),
  status_code: Type.Optional(whole(100, 599, "The HTTP status it fails with; the condition's usual one if left out.")),
});

/** The result of checking a chain that is not stored. */
export const ChainCheck = described('The result of checking a chain.', {
  warnings: Type.Array(Warning, { description: 'What the rules really do, where that may surprise.' }),
  worst_case: WorstCase,
});

export type ChainCheck = Static<typeof ChainCheck>;
export type Decision = Static<typeof Decision>;
export type WorstCase = Static<typeof WorstCase>;
export type Step = Static<typeof Step>;
export type Question = Static<typeof Question>;
export type Routing = Static<typeof Routing>;
export type RoutingQuery = Static<typeof RoutingQuery>;

const toClaude = { next_provider: 'claude', exceptions: [], findings: [] };
const routingExample: Routing = {
  order: ['gpt-4o', 'claude'],
  providers: [
    {
      name: 'gpt-4o',
      cooldown: null,
      decisions: [
        { condition: 'rate_limit', action: 'retry', max_retries: 3, source: 'rule', rule: 0, ...toClaude },
        { condition: 'timeout', action: 'failover', max_retries: 0, source: 'rule', rule: 1, ...toClaude },
        { condition: 'server_error', action: 'failover', max_retries: 0, source: 'default', rule: null, ...toClaude },
      ],
    },
  ],
  worst_case: { attempts: 8, latency_ms: 300_000, first_token_ms: 300_000 },
  warnings: [],
  question: { provider: 'gpt-4o', condition: 'timeout', status_code: null, served_by: 'claude' },
  path: [
    { provider: 'gpt-4o', attempt: 1, condition: 'timeout', action: 'failover', wait_ms: 0, source: 'rule', rule: 1 },
    { provider: 'claude', attempt: 1, condition: null, action: 'serve', wait_ms: 0, source: null, rule: null },
  ],
};

/** The routes of routing. */
const routingRoutes = routeTable('chains', {
  getRouting: defineRoute({
    method: 'GET',
    path: '/chains/{id}/routing',
    access: 'read',
    summary: 'Get routing information',
    description:
      'What the chain does on every failure of every provider, and the upper bounds of a prompt. With `provider` and `condition` also the path of a prompt if this provider always fails this way and the others answer. No provider is called.',
    params: IdParams,
    query: RoutingQuery,
    responses: { 200: { schema: Routing, description: 'The decisions.', example: routingExample }, ...failing(401, 404, 429) },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const routingApi = { routes: routingRoutes, schemas: { Decision, WorstCase, Step, Routing, ChainCheck } };
