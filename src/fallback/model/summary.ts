import Type, { type Static } from 'typebox';

import { choice, Id, IdParams, orNull, timestamp } from '../../kit/schemas.ts';
import { conditions, ruleConditions } from './chain.ts';
import { closed, count, exampleId, exampleTime, failing, rate } from './common.ts';
import { exportFormats } from './export.ts';
import { defineRoute } from './route.ts';
import { WorstCase } from './routing.ts';
import { modes, testStatuses, verdicts } from './test.ts';

/** The latest test of a chain in short. */
export const LastTest = Type.Object(
  {
    id: Id,
    status: choice(testStatuses),
    mode: choice(modes),
    verdict: orNull(choice(verdicts)),
    prompt_count: count('How many prompts it has.'),
    success_rate: orNull(rate('Prompts served, over all.')),
    chain_version: Type.Integer({ description: 'The version of the chain it tests.' }),
    started_at: timestamp('When it began.'),
    completed_at: orNull(timestamp('When it ended.')),
  },
  closed,
);

/** A chain in a few sentences, and the facts behind them. */
export const ChainSummary = Type.Object(
  {
    text: Type.String({ description: 'The chain in a few sentences.' }),
    provider_count: count('How many providers it has.'),
    rule_count: count('How many rules it has.'),
    primary: Type.String({ description: 'The provider that is tried first.' }),
    last_resort: Type.String({ description: 'The provider that is tried last.' }),
    conditions: Type.Object(
      {
        with_rule: Type.Array(choice(ruleConditions), { description: 'Conditions that a rule decides for every provider and status.' }),
        by_default: Type.Array(choice(conditions), { description: 'Conditions that a default decides, at least in part.' }),
      },
      closed,
    ),
    worst_case: WorstCase,
    last_test: orNull(LastTest),
    lossless_formats: Type.Array(choice(exportFormats), { description: 'Export formats that lose nothing of this chain.' }),
  },
  { ...closed, description: 'A chain in a few sentences, and the facts behind them.' },
);

export type LastTest = Static<typeof LastTest>;
export type ChainSummary = Static<typeof ChainSummary>;

const summaryExample: ChainSummary = {
  text: 'production-chain asks gpt-4o first and falls back to claude. On rate_limit it retries 3 times, then fails over.',
  provider_count: 2,
  rule_count: 2,
  primary: 'gpt-4o',
  last_resort: 'claude',
  conditions: {
    with_rule: ['rate_limit', 'timeout'],
    by_default: [
      'server_error',
      'connection_error',
      'auth_error',
      'quota_exceeded',
      'context_length',
      'content_filter',
      'invalid_request',
      'invalid_response',
    ],
  },
  worst_case: { attempts: 8, latency_ms: 300_000 },
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

export const getSummary = defineRoute({
  id: 'getSummary',
  method: 'GET',
  path: '/chains/{id}/summary',
  tag: 'chains',
  access: 'read',
  summary: 'Get the chain summary',
  description: 'The chain in a few sentences, with the facts behind them and its latest test.',
  params: IdParams,
  responses: { 200: { schema: ChainSummary, description: 'The summary.', example: summaryExample }, ...failing(401, 404, 429) },
});
