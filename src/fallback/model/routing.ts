import Type, { type Static } from 'typebox';

import { choice, IdParams, orNull } from '../../kit/schemas.ts';
import { actions, conditions } from './chain.ts';
import { closed, count, failing, milliseconds, Warning, whole } from './common.ts';
import { defineRoute } from './route.ts';

export const sources = ['rule', 'default'] as const;
export const steps = ['retry', 'failover', 'fail', 'serve'] as const;

/** What the chain does with a failure: the answer of a rule or of a default. */
const decided = {
  action: choice(actions, { description: 'What happens first.' }),
  max_retries: count('Extra attempts at this provider before the chain goes on.'),
  next_provider: orNull(Type.String(), 'Who is tried after that; null where the prompt fails.'),
  source: choice(sources, { description: 'Whether a rule of the chain says so or the default.' }),
  rule: orNull(Type.Integer({ minimum: 0 }), "The rule's place in `fallback_rules`; null for a default."),
};

export const Decision = Type.Object(
  {
    condition: choice(conditions, { description: 'What went wrong.' }),
    ...decided,
    exceptions: Type.Array(
      Type.Object({ status_code: Type.Integer({ description: 'The HTTP status that is treated differently.' }), ...decided }, closed),
      { description: 'HTTP statuses of this condition for which another rule decides.' },
    ),
  },
  { ...closed, description: 'What the chain does when a provider fails in a certain way.' },
);

export const WorstCase = Type.Object(
  {
    attempts: count('The most attempts that one prompt can cost.'),
    latency_ms: milliseconds('The longest that one prompt can take, time-outs and waits included.'),
  },
  { ...closed, description: 'What no prompt can exceed, whatever the providers do.' },
);

export const Step = Type.Object(
  {
    provider: Type.String({ description: 'Who is asked.' }),
    attempt: whole(1, 1_000, 'Which attempt at this provider it is, from 1.'),
    condition: orNull(choice(conditions), 'How it fails; null where it answers.'),
    action: choice(steps, { description: 'What happens then.' }),
    wait_ms: milliseconds('The longest wait before the next step, a Retry-After left aside.'),
    source: orNull(choice(sources), 'Whether a rule or a default says so; null where the provider answers.'),
    rule: orNull(Type.Integer({ minimum: 0 }), "The rule's place in `fallback_rules`."),
  },
  { ...closed, description: 'A step of the path that a prompt walks.' },
);

export const Question = Type.Object(
  {
    provider: Type.String({ description: 'The provider that fails, every time.' }),
    condition: choice(conditions, { description: 'How it fails.' }),
    status_code: orNull(Type.Integer(), 'The HTTP status it fails with; null where none arrives.'),
    served_by: orNull(Type.String(), 'Who answers in the end; null when the prompt fails.'),
  },
  { ...closed, description: 'The question that `path` answers.' },
);

/** What the chain does with every failure of every provider. */
export const Routing = Type.Object(
  {
    order: Type.Array(Type.String(), { description: 'The names of the providers in the order they are tried.' }),
    providers: Type.Array(Type.Object({ name: Type.String(), decisions: Type.Array(Decision) }, closed), {
      description: 'For each provider one decision for each of the ten conditions.',
    }),
    worst_case: WorstCase,
    warnings: Type.Array(Warning),
    question: orNull(Question),
    path: orNull(Type.Array(Step), 'The steps walked from the provider asked about; null without a question.'),
  },
  { ...closed, description: 'What the chain does with every failure of every provider.' },
);

/** Both of `provider` and `condition`, or neither. */
export const RoutingQuery = Type.Object(
  {
    provider: Type.Optional(
      Type.String({ maxLength: 256, description: 'Asks what happens if this provider fails ...', example: 'gpt-4o' }),
    ),
    condition: Type.Optional(choice(conditions, { description: '... in this way.', example: 'rate_limit' })),
    status_code: Type.Optional(whole(100, 599, "The HTTP status it fails with; the condition's usual one if left out.")),
  },
  closed,
);

/** What is to be said of a chain that is not kept, or not yet. */
export const ChainCheck = Type.Object(
  {
    warnings: Type.Array(Warning, { description: 'What the rules really do, where that may surprise.' }),
    worst_case: WorstCase,
  },
  { ...closed, description: 'What is to be said of a chain before it is kept.' },
);

export type ChainCheck = Static<typeof ChainCheck>;
export type Decision = Static<typeof Decision>;
export type WorstCase = Static<typeof WorstCase>;
export type Step = Static<typeof Step>;
export type Question = Static<typeof Question>;
export type Routing = Static<typeof Routing>;
export type RoutingQuery = Static<typeof RoutingQuery>;

const toClaude = { next_provider: 'claude', exceptions: [] };
const routingExample: Routing = {
  order: ['gpt-4o', 'claude'],
  providers: [
    {
      name: 'gpt-4o',
      decisions: [
        { condition: 'rate_limit', action: 'retry', max_retries: 3, source: 'rule', rule: 0, ...toClaude },
        { condition: 'timeout', action: 'failover', max_retries: 0, source: 'rule', rule: 1, ...toClaude },
        { condition: 'server_error', action: 'failover', max_retries: 0, source: 'default', rule: null, ...toClaude },
      ],
    },
  ],
  worst_case: { attempts: 8, latency_ms: 300_000 },
  warnings: [],
  question: { provider: 'gpt-4o', condition: 'timeout', status_code: null, served_by: 'claude' },
  path: [
    { provider: 'gpt-4o', attempt: 1, condition: 'timeout', action: 'failover', wait_ms: 0, source: 'rule', rule: 1 },
    { provider: 'claude', attempt: 1, condition: null, action: 'serve', wait_ms: 0, source: null, rule: null },
  ],
};

export const getRouting = defineRoute({
  id: 'getRouting',
  method: 'GET',
  path: '/chains/{id}/routing',
  tag: 'chains',
  access: 'read',
  summary: 'Get routing information',
  description:
    'What the chain does with every failure of every provider, and the most that one prompt can cost. With `provider` and `condition` also the path that a prompt walks when this provider fails so every time and the others answer; nobody is called.',
  params: IdParams,
  query: RoutingQuery,
  responses: { 200: { schema: Routing, description: 'The decisions.', example: routingExample }, ...failing(401, 404, 429) },
});
