import Type, { type Static } from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { choice, described, IdParams, orNull } from '../../kit/schemas.ts';
import { type Condition, conditions } from './chain.ts';
import { failing } from './common.ts';
import { defineRoute } from './route.ts';

export const Finding = described('What an import left out of a file, or what the chain does otherwise than the file.', {
  kind: Type.String({ description: 'The kind of finding, for programs.', example: 'load_balanced' }),
  field: orNull(Type.String(), 'The dotted path in the file; null if it is not about one field.'),
  line: orNull(Type.Integer({ minimum: 1 }), 'The line of the field in the file; null if it is unknown.'),
  detail: Type.String({ description: 'The finding as a sentence.' }),
  provider: orNull(Type.String(), 'The provider that it concerns; null for none in particular.'),
  condition: orNull(choice(conditions), 'The failure of the provider that it concerns; null for none in particular.'),
  loss: Type.Boolean({ description: 'Whether the chain behaves otherwise than the file; false for advice.' }),
  measured: orNull(
    Type.String({ example: 'LiteLLM 1.106.2 and 1.110.2' }),
    'The program and its versions with which this was measured; null for advice, and for what was not.',
  ),
  stream: Type.Optional(Type.Literal(true, { description: 'Present if it only concerns streamed answers.' })),
  status_codes: Type.Optional(Type.Array(Type.Integer(), { description: 'Present if it only concerns failures with these statuses.' })),
});
export type Finding = Static<typeof Finding>;

/** A failure of a provider; the condition is null if it answered. */
interface Failed {
  readonly provider: string;
  readonly condition: Condition | null;
  /** Whether its answer was streamed; undefined if that is not known, null for both. */
  readonly stream?: boolean | null;
  /** Its status; undefined if that is not known, null for none. */
  readonly status_code?: number | null;
}

/** What a finding is about. */
export type Concerned = Pick<Finding, 'provider' | 'condition' | 'stream' | 'status_codes'>;

/** Whether a finding is about a failure: it names the provider and the condition, and the answers and statuses if it is not about all. */
export const concerns = ({ provider, condition, stream, status_codes: statuses }: Concerned, failed: Failed): boolean =>
  condition !== null &&
  condition === failed.condition &&
  provider === failed.provider &&
  (stream === undefined || failed.stream === undefined || failed.stream === stream) &&
  (statuses === undefined || failed.status_code === undefined || statuses.some((status) => status === failed.status_code));

/** The kind of findings that a gateway waits longer for an answer than the chain. */
export const ofWaits = 'timeout';

/** The kind of findings, and the code of warnings, about cool-downs. */
export const ofCooldowns = 'cooldowns';

/** Whether a finding is about cool-downs as such, and so about no single failure. */
export const isOfCooldowns = ({ kind, condition }: Partial<Pick<Finding, 'kind'>> & Pick<Finding, 'condition'>): boolean =>
  kind === ofCooldowns && condition === null;

/** A difference, as far as findings are about it. */
interface Differing extends Failed {
  readonly kind: string;
}

/**
 * Whether a finding explains a difference: it is a loss and about its failure, or about who is left out by a failure; only that changes what
 * is drawn. Which model of a balanced group is drawn explains none, since they compare as equal.
 */
export const explains = (finding: Concerned & Partial<Pick<Finding, 'kind'>> & Pick<Finding, 'loss'>, difference: Differing): boolean =>
  finding.loss &&
  finding.kind !== 'load_balanced' &&
  ((difference.kind !== 'draws' && concerns(finding, difference)) ||
    (isOfCooldowns(finding) &&
      (finding.provider === null || finding.provider === difference.provider) &&
      (difference.kind === 'cooldown' || (difference.kind === 'draws' && difference.condition !== null))));

const findingExample: Finding = {
  kind: 'calls',
  field: null,
  line: null,
  detail: 'If gpt-4o fails with rate_limit, LiteLLM calls gpt-4o 3 times; the chain calls gpt-4o once, then claude once.',
  provider: 'gpt-4o',
  condition: 'rate_limit',
  loss: true,
  measured: 'LiteLLM 1.106.2 and 1.110.2',
};

/** The routes of findings. */
const findingRoutes = routeTable('chains', {
  getFindings: defineRoute({
    method: 'GET',
    path: '/chains/{id}/findings',
    access: 'read',
    summary: 'Get the findings of the import',
    description: 'The findings of the import that made the chain; none after its providers or rules have changed.',
    params: IdParams,
    responses: {
      200: { schema: Type.Array(Finding), description: 'The findings, in the order of the import.', example: [findingExample] },
      ...failing(401, 404, 429),
    },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const findingApi = { routes: findingRoutes, schemas: { Finding } };
