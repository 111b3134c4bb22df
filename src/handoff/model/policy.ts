import Type, { type Static } from 'typebox';

import { choice, described, name, object, record, remark } from '../../kit/schemas.ts';

/** The most policies of a tenant, rules of a policy, steps of a rule, escalations of a step, and people of a step. */
export const maxPolicies = 100;
const maxRules = 50;
const maxSteps = 5;
const maxEscalations = 5;
const maxNames = 100;
/** The longest time of a step: a year. */
const maxSeconds = 31_536_000;
/** The longest time for which an approval may stand where no policy says: 30 days. */
export const maxRememberSeconds = 2_592_000;

const names = (description: string) =>
  Type.Array(name('The name of a person, or `group:` and the name of a group.', { maxLength: 200 }), {
    minItems: 1,
    maxItems: maxNames,
    description,
  });
const seconds = (description: string, maximum = maxSeconds) => Type.Integer({ minimum: 1, maximum, description });

export const Step = described('One step: whom it asks, and how many of them must approve.', {
  from: names('Who is asked: people by name, and groups as `group:finance`.'),
  count: Type.Optional(Type.Integer({ minimum: 1, maximum: 10, default: 1, description: 'How many different people must approve.' })),
  timeout_seconds: Type.Optional(seconds('When the step ends by itself, from its beginning.')),
  on_timeout: Type.Optional(
    choice(['reject', 'next', 'keep'], {
      default: 'keep',
      description: 'What happens then: the action is rejected, the next step begins without the approvals of this one, or nothing.',
    }),
  ),
  escalate: Type.Optional(
    Type.Array(
      object({ after_seconds: seconds('When, from the beginning of the step.'), to: names('Who is asked in addition from then on.') }),
      { maxItems: maxEscalations, description: 'Who is asked in addition after a time without enough approvals.' },
    ),
  ),
});

const Then = Type.Union(
  [
    object({ approve: remark('The reason. The action is approved without a person.') }),
    object({ reject: remark('The reason. The action is rejected without a person.') }),
    object({ ask: Type.Array(Step, { minItems: 1, maxItems: maxSteps, description: 'The steps, one after the other.' }) }),
  ],
  { description: 'What the rule decides: one of `approve`, `reject` and `ask`.' },
);

const Rule = object({
  when: Type.Optional(
    record(Type.Unknown(), {
      description:
        'A JSON Schema (2020-12) of `{tool, arguments, agent, framework, tags, priority, custom}`, with the bounds of contracts; left out: any. A rule that approves may use only `type`, `properties`, `required`, `const`, `enum`, `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `minLength`, `maxLength`, `items` and `allOf`, and everything that it names must be there and have the type that it is compared as.',
    }),
  ),
  then: Then,
});

const patterns = (what: string) =>
  Type.Array(name(`The name of ${what}; with \`*\` at the end, every name that begins so.`, { maxLength: 512 }), { maxItems: 100 });

export const PolicyRequest = object({
  description: Type.Optional(remark('What the policy is for.')),
  order: Type.Optional(
    Type.Integer({ minimum: -1_000_000, maximum: 1_000_000, default: 0, description: 'Policies are tried by this number, then by name.' }),
  ),
  match: Type.Optional(
    described('Which actions it judges; what is left out or empty fits everything.', {
      agents: Type.Optional(patterns('an agent')),
      tools: Type.Optional(patterns('a tool')),
      tags: Type.Optional(patterns('a tag, all of which the packet has')),
    }),
  ),
  rules: Type.Array(Rule, {
    minItems: 1,
    maxItems: maxRules,
    description: 'The first rule that fits decides; if none fits, anybody who may answer is asked.',
  }),
  mode: Type.Optional(
    choice(['enforce', 'shadow'], {
      default: 'enforce',
      description: '`shadow`: it decides nothing; what it would have decided is recorded.',
    }),
  ),
  remember: Type.Optional(
    described('Whether an approval may stand for later actions. Left out: it may not.', {
      scope: choice(['call', 'tool'], { description: 'For the same arguments, or for any arguments of the tool.' }),
      max_seconds: seconds('For how long.'),
    }),
  ),
});

export type Step = Static<typeof Step>;
export type Then = Static<typeof Then>;
export type Rule = Static<typeof Rule>;
export type PolicyRequest = Static<typeof PolicyRequest>;
