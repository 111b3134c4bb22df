import Type, { type Static } from 'typebox';

import { routeTable } from '../../kit/route.ts';
import { choice, described, givenTimestamp, IfMatch, name, object, orNull, record, remark, timestamp } from '../../kit/schemas.ts';
import { decisions, rememberScopes } from './action.ts';
import { ETag, failing, indexedName, priorities } from './common.ts';
import { pageOf, pageQuery } from './document.ts';
import { defineRoute } from './route.ts';

/** The most policies of a tenant, rules of a policy, steps of a rule, escalations of a step, and people of a step. */
export const maxPolicies = 100;
const maxRules = 50;
const maxSteps = 5;
const maxEscalations = 5;
const maxNames = 100;
/** The longest time of a step: a year. */
const maxSeconds = 31_536_000;

const names = (description: string) =>
  Type.Array(name('The name of a person, or `group:` and the name of a group.', { maxLength: 200 }), {
    minItems: 1,
    maxItems: maxNames,
    description,
  });
const seconds = (description: string, maximum = maxSeconds) => Type.Integer({ minimum: 1, maximum, description });

export const Step = described('One step: whom it asks, and how many of them must approve.', {
  from: names('Who is asked: people by name, and groups as `group:finance`.'),
  count: Type.Optional(Type.Integer({ minimum: 1, maximum: 10, description: 'How many different people must approve; 1 if left out.' })),
  timeout_seconds: Type.Optional(seconds('When the step ends by itself, from its beginning.')),
  on_timeout: Type.Optional(
    choice(['reject', 'next', 'keep'], {
      description:
        'What happens then: the action is rejected, the next step begins without the approvals of this one, or nothing (`keep`, which is the default).',
    }),
  ),
  escalate: Type.Optional(
    Type.Array(
      object({ after_seconds: seconds('When, from the beginning of the step.'), to: names('Who is asked in addition from then on.') }),
      { maxItems: maxEscalations, description: 'Who is asked in addition after a time without enough approvals.' },
    ),
  ),
});

export type Step = Static<typeof Step>;

/** What a rule decides. */
export type Then = { readonly approve: string } | { readonly reject: string } | { readonly ask: readonly Step[] };

/** An object with one of its fields, so that faults name the field that was sent. */
const Then = Type.Unsafe<Then>(
  Type.Object(
    {
      approve: Type.Optional(remark('The reason. The action is approved without a person.')),
      reject: Type.Optional(remark('The reason. The action is rejected without a person.')),
      ask: Type.Optional(Type.Array(Step, { minItems: 1, maxItems: maxSteps, description: 'The steps, one after the other.' })),
    },
    {
      ...{ additionalProperties: false, minProperties: 1, maxProperties: 1 },
      description: 'What the rule decides: one of `approve`, `reject` and `ask`.',
    },
  ),
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
    Type.Integer({
      minimum: -1_000_000,
      maximum: 1_000_000,
      description: 'Policies are tried by this number, 0 if left out, then by name.',
    }),
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
    description: 'The first rule that fits decides; if none fits, anybody but the asker is asked, and only verified names count.',
  }),
  mode: Type.Optional(
    choice(['enforce', 'shadow'], {
      description: '`shadow`: it decides nothing; what it would have decided is recorded. `enforce` if left out.',
    }),
  ),
  remember: Type.Optional(
    described('What approvers may let stand for later actions; nothing if left out.', {
      scope: choice(rememberScopes, { description: '`call`: the same call; `tool`: any call of the tool too.' }),
      max_seconds: seconds('How long at most.'),
    }),
  ),
});

export type Rule = Static<typeof Rule>;
export type PolicyRequest = Static<typeof PolicyRequest>;

/** The policy as callers see it. */
export const Policy = object({
  name: Type.String({ description: 'The name of the policy.' }),
  version: Type.Integer({ minimum: 1, description: 'The number of the version. Each change increments it, also after a removal.' }),
  description: orNull(Type.String()),
  order: Type.Integer(),
  match: object({ agents: Type.Array(Type.String()), tools: Type.Array(Type.String()), tags: Type.Array(Type.String()) }),
  rules: PolicyRequest.properties.rules,
  mode: choice(['enforce', 'shadow']),
  remember: Type.Union([Type.Object({ scope: choice(rememberScopes), max_seconds: Type.Integer() }), Type.Null()]),
  shadow: object({
    asked: Type.Integer({ description: 'Actions about which it would have asked somebody.' }),
    approved: Type.Integer(),
    rejected: Type.Integer(),
  }),
  warnings: Type.Array(Type.String(), { description: 'What will probably not work as it should, one sentence each.' }),
  created_at: timestamp('When it was first published, or published again after a removal.'),
  updated_at: timestamp('When its version was published.'),
});

/** An action to try the policies with. */
export const TryRequest = object({
  agent: indexedName('The id of the agent that would ask.'),
  framework: Type.Optional(remark('What the agent runs on.')),
  action: object({
    tool: name('The tool.', { maxLength: 256 }),
    arguments: record(Type.Unknown(), { description: 'The arguments of the call.' }),
  }),
  tags: Type.Optional(Type.Array(indexedName('A tag.'), { maxItems: 100 })),
  priority: Type.Optional(choice(priorities, { description: 'How urgent it is. Default: normal.' })),
  custom: Type.Optional(record(Type.Unknown(), { description: '`context.custom` of the packet.' })),
});

const Tried = Type.Object({
  policy: orNull(Type.String(), 'The policy that decides; null if none fits.'),
  rule: orNull(Type.Integer(), 'The number of its rule, from 1; null if none fits.'),
  then: Type.Union([Then, Type.Null()], {
    description:
      'What it decides. Null: anybody who may answer is asked; where a policy matches, anybody but the asker, and only verified names count. A rule approves only for an agent that the asking key is bound to.',
  }),
  skipped: Type.Array(
    Type.Object({
      policy: Type.String(),
      rule: orNull(Type.Integer(), 'The number of the rule, from 1; null if the policy does not match.'),
      path: Type.String({ description: 'The part of `match`, or of the action, that does not fit.' }),
    }),
    { description: 'The policies and rules before it, and where they do not fit.' },
  ),
});

/** A request to judge past actions by a policy. */
export const ReplayRequest = object({
  policy: Type.Optional(PolicyRequest),
  since: Type.Optional(givenTimestamp('Only actions that were decided from then on.')),
  until: Type.Optional(givenTimestamp('Only actions that were decided before then.')),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1000, description: 'The most past actions to read, the latest first; 1,000 if left out.' }),
  ),
});
export type ReplayRequest = Static<typeof ReplayRequest>;

const outcomes = ['approve', 'reject', 'ask'] as const;
const Replayed = Type.Object({
  actions: Type.Integer({ description: 'The past actions that the policy matches.' }),
  approved: Type.Integer({ description: 'Those that a rule would have approved.' }),
  rejected: Type.Integer(),
  asked: Type.Integer({ description: 'Those about which somebody would have been asked.' }),
  agreeing: Type.Integer({ description: 'Those that a rule would have decided as people did.' }),
  disagreeing: Type.Array(
    Type.Object({
      packet_id: Type.String(),
      person: choice(decisions, { description: 'What people decided.' }),
      policy: choice(outcomes, { description: 'What the policy would have decided.' }),
      rule: orNull(Type.Integer()),
    }),
    { description: 'Those that a rule would have decided otherwise.' },
  ),
});
export type Replayed = Static<typeof Replayed>;

export type Policy = Static<typeof Policy>;
export type TryRequest = Static<typeof TryRequest>;

const policyRequestExample = {
  match: { agents: ['refund-*'], tools: ['refund'] },
  rules: [
    {
      when: {
        properties: {
          arguments: { properties: { amount: { type: 'number', minimum: 0, maximum: 50 } }, required: ['amount'] },
        },
      },
      then: { approve: 'up to 50' },
    },
    {
      when: { properties: { arguments: { properties: { amount: { minimum: 10_000 } } } } },
      then: { ask: [{ from: ['group:finance'], count: 2 }, { from: ['cfo@example.com'] }] },
    },
    { then: { ask: [{ from: ['group:support'] }] } },
  ],
};
const policyExample = {
  ...{ name: 'refunds', version: 1, description: null, order: 0, ...policyRequestExample },
  match: { ...policyRequestExample.match, tags: [] },
  ...{ mode: 'enforce', remember: null, shadow: { asked: 0, approved: 0, rejected: 0 }, warnings: [] },
  ...{ created_at: '2026-03-01T09:30:00.000Z', updated_at: '2026-03-01T09:30:00.000Z' },
};
const policy = (description: string) => ({ schema: Policy, description, example: policyExample, headers: ETag });
const params = Type.Object({ name: indexedName('The name of the policy.') });

const policyRoutes = routeTable('approvals', {
  putPolicy: defineRoute({
    method: 'PUT',
    path: '/policies/{name}',
    access: 'manage',
    summary: 'Publish a policy',
    description:
      'It judges the actions that are asked about from now on; questions that are open keep the version with which they were asked. The first policy by `order`, then by name, whose `match` fits decides. Publishing the same document again changes nothing.',
    params,
    body: PolicyRequest,
    bodyExample: policyRequestExample,
    nullIsAbsent: true,
    headers: { ...IfMatch, 'If-None-Match': '`*`: only if there is no such policy yet. Optional.' },
    responses: {
      200: policy('The policy, in its next version unless nothing changed.'),
      201: policy('The policy, which did not exist before.'),
      ...failing(400, 401, 403, 409, 412, 413, 415, 429),
    },
  }),
  getPolicy: defineRoute({
    method: 'GET',
    path: '/policies/{name}',
    access: 'read',
    alternative: 'manage',
    summary: 'Get a policy',
    params,
    headers: { 'If-None-Match': 'The `ETag` that the caller last saw; 304 when the policy has not changed since. Optional.' },
    responses: {
      200: policy('The policy.'),
      304: { description: 'The policy has not changed since.', headers: ETag },
      ...failing(401, 403, 404, 429),
    },
  }),
  deletePolicy: defineRoute({
    method: 'DELETE',
    path: '/policies/{name}',
    access: 'manage',
    summary: 'Remove a policy',
    params,
    headers: IfMatch,
    responses: { 204: { description: 'Done.' }, ...failing(401, 403, 404, 412, 429) },
  }),
  listPolicies: defineRoute({
    method: 'GET',
    path: '/policies',
    access: 'read',
    alternative: 'manage',
    summary: 'List policies',
    description: 'The policies, by name. Pass `next_cursor` as `cursor` for the next page; it is null on the last page.',
    query: pageQuery,
    responses: { 200: pageOf('policies', Policy, policyExample), ...failing(401, 403, 429) },
  }),
  tryPolicies: defineRoute({
    method: 'POST',
    path: '/policies/try',
    access: 'read',
    alternative: 'manage',
    summary: 'Try the policies with an action',
    description: 'Which policy would decide about the action, and where the ones before it do not fit. Nothing is written.',
    body: TryRequest,
    bodyExample: { agent: 'refund-eu', action: { tool: 'refund', arguments: { amount: 500 } } },
    nullIsAbsent: true,
    responses: {
      200: {
        schema: Tried,
        description: 'What decides.',
        example: {
          ...{ policy: 'refunds', rule: 3, then: { ask: [{ from: ['group:support'] }] } },
          skipped: [
            { policy: 'refunds', rule: 1, path: 'arguments.amount' },
            { policy: 'refunds', rule: 2, path: 'arguments.amount' },
          ],
        },
      },
      ...failing(400, 401, 403, 413, 415, 429),
    },
  }),
  replayPolicy: defineRoute({
    method: 'POST',
    path: '/policies/{name}/replay',
    access: 'read',
    alternative: 'manage',
    summary: 'Judge past actions by a policy',
    description:
      'What the policy would have decided about past actions, beside what people did decide: the latest that were decided, with the arguments that the agent proposed and the packet as it is now. With `policy` in the body that one is judged by, which need not be stored. Nothing is written.',
    params,
    body: ReplayRequest,
    bodyOptional: true,
    bodyExample: { since: '2026-02-01T00:00:00.000Z', limit: 500 },
    nullIsAbsent: true,
    responses: {
      200: {
        schema: Replayed,
        description: 'What it would have decided.',
        example: {
          ...{ actions: 120, approved: 80, rejected: 0, asked: 40, agreeing: 79 },
          disagreeing: [{ packet_id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b', person: 'reject', policy: 'approve', rule: 1 }],
        },
      },
      ...failing(400, 401, 403, 404, 413, 415, 429),
    },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const policyApi = {
  tag: { name: 'approvals', description: 'Policies, groups and delegations: who may approve what an agent wants to do.' },
  routes: policyRoutes,
  schemas: { Policy, PolicyRequest, ReplayRequest, Step, TryRequest },
};
