import Type, { type Static } from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { choice, described, Id, IdParams, object, orNull, timestamp } from '../../kit/schemas.ts';
import { conditions, ruleConditions } from './chain.ts';
import { count, exampleId, exampleTime, failing, rate } from './common.ts';
import { defineRoute } from './route.ts';
import { WorstCase } from './routing.ts';
import { exportFormats } from './targets.ts';
import { modes, testStatuses, verdicts } from './test.ts';

/** A summary of the latest test of a chain. */
export const LastTest = object({
  id: Id,
  status: choice(testStatuses),
  mode: choice(modes),
  verdict: orNull(choice(verdicts)),
  prompt_count: count('The number of prompts.'),
  success_rate: orNull(rate('Served prompts, of all prompts.')),
  chain_version: Type.Integer({ description: 'The tested version of the chain.' }),
  started_at: timestamp('When the test started.'),
  completed_at: orNull(timestamp('When the test ended.')),
});

export const ChainSummary = described('A description of a chain in a few sentences, with the underlying facts.', {
  text: Type.String({ description: 'The chain in a few sentences.' }),
  provider_count: count('The number of providers.'),
  rule_count: count('The number of rules.'),
  primary: Type.String({ description: 'The provider that is tried first.' }),
  last_resort: Type.String({ description: 'The provider that is tried last.' }),
  conditions: object({
    with_rule: Type.Array(choice(ruleConditions), { description: 'Conditions that rules decide for all providers and statuses.' }),
    by_default: Type.Array(choice(conditions), {
      description: 'Conditions that a default decides, at least for some provider or status.',
    }),
  }),
  worst_case: WorstCase,
  last_test: orNull(LastTest),
  lossless_formats: Type.Array(choice(exportFormats), { description: 'Export formats that are lossless for this chain.' }),
});

export type LastTest = Static<typeof LastTest>;
export type ChainSummary = Static<typeof ChainSummary>;

const summaryExample: ChainSummary = {
  text: 'production-chain asks gpt-4o first and falls back to claude. On rate_limit it retries 3 times, then fails over.',
  provider_count: 2,
  rule_count: 2,
  primary: 'gpt-4o',
  last_resort: 'claude',
  conditions: { with_rule: conditions.slice(0, 2), by_default: conditions.slice(2) },
  worst_case: { attempts: 8, latency_ms: 300_000, first_token_ms: 300_000 },
  last_test: {
    id: exampleId,
    status: 'completed',
    mode: 'simulate',
    verdict: 'pass',
    prompt_count: 6,
    success_rate: 1,
    chain_version: 1,
    started_at: exampleTime,
    completed_at: exampleTime,
  },
  lossless_formats: ['json', 'yaml'],
};

/** The routes of summaries. */
const summaryRoutes = routeTable('chains', {
  getSummary: defineRoute({
    method: 'GET',
    path: '/chains/{id}/summary',
    access: 'read',
    summary: 'Get the chain summary',
    description: 'A description of the chain in a few sentences, with the underlying facts and the latest test.',
    params: IdParams,
    responses: { 200: { schema: ChainSummary, description: 'The summary.', example: summaryExample }, ...failing(401, 404, 429) },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const summaryApi = { routes: summaryRoutes, schemas: { LastTest, ChainSummary } };
