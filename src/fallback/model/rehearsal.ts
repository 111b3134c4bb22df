import Type, { type Static } from 'typebox';

import { routeTable } from '../../kit/route.ts';
import { choice, described, IdParams, object, orNull, record } from '../../kit/schemas.ts';
import { conditions } from './chain.ts';
import { count, failing, optional, shortName, whole } from './common.ts';
import { defineRoute } from './route.ts';
import { rehearsalFormats } from './targets.ts';

/** The most headers of a request to a gateway. */
const maxHeaders = 20;

/** A running gateway, to which a rehearsal sends its prompts. */
export const Gateway = described('The gateway to rehearse, with the mode `rehearsal`.', {
  url: Type.String({
    minLength: 1,
    maxLength: 2048,
    description: 'The base URL of its OpenAI-compatible API, with the version path.',
    example: 'http://127.0.0.1:4000/v1',
  }),
  model: optional(shortName('The model that callers name. Default: the first model group of the export for LiteLLM.')),
  api_key_env: optional(
    Type.String({
      minLength: 1,
      maxLength: 128,
      pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
      description: "The environment variable with the gateway's key, which `SERVICE_LIVE_KEYS` permits for its host. Default: no key.",
    }),
  ),
  headers: optional(
    record(Type.String({ maxLength: 8192, pattern: '^[\\x20-\\x7e]*$' }), {
      maxProperties: maxHeaders,
      propertyNames: Type.String({ pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$" }),
      description: `At most ${maxHeaders} further headers. The value \`{config}\` stands for the rehearsal export for Portkey, on one line.`,
      example: { 'x-portkey-config': '{config}' },
    }),
  ),
  export_format: optional(
    choice(rehearsalFormats, {
      description:
        'The export that it runs: what that does otherwise than the chain explains differences. Default: `portkey` with `{config}` in a header, else none, so that nothing is explained.',
    }),
  ),
  timeout_ms: optional(whole(1, 3_600_000, 'How long a prompt may take. Default: twice as long as the chain needs, and at least 30 s.')),
});
export type Gateway = Static<typeof Gateway>;

const condition = orNull(choice(conditions), 'The failure; null for an answer.');

/** What the chain says about a prompt. */
export const Expected = described('What the chain does with the same failures, by simulation.', {
  served_by: orNull(Type.String(), 'Who answers; null if nobody does.'),
  attempts: Type.Array(object({ provider: Type.String(), condition }), { description: 'The calls, in order.' }),
});
export type Expected = Static<typeof Expected>;

/** How far the gateway does what the chain says. */
export const Agreement = described('How far the gateway does what the chain says.', {
  prompts: count('The finished prompts.'),
  agreeing: count('The prompts in which the gateway called the same providers in the same order as often, with the same end.'),
  differing: count('The prompts in which it did something else.'),
  not_tested: count('The prompts in which a call should have failed, and the gateway made none that did: they test nothing.'),
  sent_again: count('The prompts that only agreed when they were sent again, as they may be if time decides about them.'),
  stray_calls: count('Calls of the fake providers that belong to no prompt.'),
});
export type Agreement = Static<typeof Agreement>;

/** What happened after a failure: the calls in order, and who answered. */
const Course = object({
  calls: Type.Array(object({ provider: Type.String(), calls: count('How often, in a row.') }), { description: 'The calls, in order.' }),
  served_by: orNull(Type.String(), 'Who answered; null if nobody did.'),
});
export type Course = Static<typeof Course>;

/** Calls of one provider in a row, and the index of the first of them. */
export interface CallRun {
  readonly provider: string;
  calls: number;
  readonly start: number;
}

/** The calls in order, those of one provider in a row together. */
export function runsOf(calls: readonly { readonly provider: string }[]): CallRun[] {
  const runs: CallRun[] = [];
  for (const [start, { provider }] of calls.entries()) {
    const last = runs.at(-1);
    if (last?.provider === provider) last.calls += 1;
    else runs.push({ provider, calls: 1, start });
  }
  return runs;
}

/** What differs: the calls, their end, or what the caller got; in a timeline also who is left out, and how a group is drawn from. */
const differenceKinds = ['calls', 'end', 'received', 'cooldown', 'draws'] as const;

/** A difference between the chain and the gateway, in one or several prompts. */
export const Difference = described('What the gateway does otherwise than the chain says.', {
  provider: Type.String({ description: 'The provider whose failure, or answer, is followed by something else.' }),
  condition: orNull(choice(conditions), 'How it failed; null if it answered.'),
  status_code: orNull(Type.Integer(), 'The status of its failure; null without one, and if it answered.'),
  kind: choice(differenceKinds, {
    description:
      '`calls`: other calls. `end`: the same calls with another end. `received`: the same calls and the same end, but the caller got something else. With a timeline, `cooldown`: a provider was called that is left out, or not called although it is not. `draws`: a provider of a balanced group got more or fewer calls than draws let expect.',
  }),
  stream: orNull(Type.Boolean(), 'Whether the answers were streamed; null if it is the same for both.'),
  second: orNull(count('A second.'), 'With a timeline: the second in which it began; null for draws, and without a timeline.'),
  expected: Course,
  actual: Course,
  prompts: count('In how many prompts.'),
  first_index: count('The index of the first of them.'),
  sentence: Type.String({ description: 'The difference as a sentence.' }),
});
export type Difference = Static<typeof Difference>;

/** The token of a chain's fake providers. */
export const RehearsalToken = described("The token in the addresses of a chain's fake providers.", {
  token: Type.String({ description: '128 random bits in hexadecimal.' }),
  base: Type.String({ description: 'The address below which each provider has its own, by its percent-encoded name.' }),
});
export type RehearsalToken = Static<typeof RehearsalToken>;

const tokenExample = {
  token: '0f1e2d3c4b5a69788796a5b4c3d2e1f0',
  base: 'http://127.0.0.1:8000/rehearsal/0f1e2d3c4b5a69788796a5b4c3d2e1f0',
};
const token = (description: string) => ({ schema: RehearsalToken, description, example: tokenExample });

/** The routes of rehearsal tokens. */
const rehearsalRoutes = routeTable('tests', {
  getRehearsalToken: defineRoute({
    method: 'GET',
    path: '/chains/{id}/rehearsal-token',
    access: 'read',
    summary: "Get the token of a chain's fake providers",
    description:
      'A configuration for a rehearsal leads to `{base}/{provider}`. The token stays the same until a new one is made, so the configuration can be kept.',
    params: IdParams,
    responses: { 200: token('The token.'), ...failing(401, 404, 429) },
  }),
  renewRehearsalToken: defineRoute({
    method: 'POST',
    path: '/chains/{id}/rehearsal-token',
    access: 'write',
    summary: "Make a new token of a chain's fake providers",
    description: 'Configurations with the previous token stop working.',
    params: IdParams,
    responses: { 201: token('The new token.'), ...failing(401, 403, 404, 429) },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const rehearsalApi = {
  routes: rehearsalRoutes,
  schemas: { Gateway, Expected, Agreement, Difference, RehearsalToken },
};
