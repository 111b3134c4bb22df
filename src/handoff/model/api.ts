import { describeApi } from '../../kit/openapi.ts';
import { type ApiPart, type Route, type RoutesOf, routesOf } from '../../kit/route.ts';

import { systemRoutesOf } from '../../kit/system.ts';
import { a2aApi } from './a2a.ts';
import { agentApi } from './agent.ts';
import { answerLinkApi } from './answer-link.ts';
import { approvalApi } from './approval.ts';
import { auditApi } from './audit.ts';
import { batchApi } from './batch-routes.ts';
import { briefApi } from './brief.ts';
import { channelApi } from './channel.ts';
import { contractApi } from './contract.ts';
import { delegationApi } from './delegation.ts';
import { erasureApi } from './erasure.ts';
import { Failure } from './errors.ts';
import { groupApi } from './group.ts';
import { keyApi } from './key.ts';
import { mcpApi } from './mcp.ts';
import { packetApi } from './packet-routes.ts';
import { personApi } from './person.ts';
import { policyApi } from './policy.ts';
import { questionApi } from './question.ts';
import type { HandoffRoute } from './route.ts';
import { scheduleApi } from './schedule.ts';
import { sessionApi } from './session.ts';
import { standingApi } from './standing.ts';
import { statsApi } from './stats.ts';
import { streamApi } from './stream.ts';
import { tenantApi } from './tenant.ts';
import { webhookApi } from './webhook-routes.ts';
import { workApi } from './work-routes.ts';

const systemApi = {
  tag: { name: 'system', description: 'Liveness, readiness, metrics. Served at the root and under the API prefix.' },
  routes: systemRoutesOf(Failure),
  schemas: {},
};

/** The name of the service in the API description and on its pages. */
export const serviceTitle = 'Baton handoff packet service';

/** The prefix of every route; the system routes are mounted at the root as well. */
export const apiPrefix = '/api/v1';

/** What clients call, as each noun declares it; the description lists it in this order. */
export const parts = [
  packetApi,
  questionApi,
  answerLinkApi,
  briefApi,
  batchApi,
  webhookApi,
  channelApi,
  workApi,
  agentApi,
  contractApi,
  approvalApi,
  policyApi,
  groupApi,
  delegationApi,
  scheduleApi,
  standingApi,
  statsApi,
  auditApi,
  erasureApi,
  keyApi,
  personApi,
  sessionApi,
  tenantApi,
  systemApi,
] as const;

/** Ways in that have clients of their own. */
const otherParts: readonly ApiPart[] = [streamApi, a2aApi, mcpApi];

/** Every route of the service, by its operation's name. Its type has a name: so the declarations hold the types of the routes once. */
export const routes: RoutesOf<typeof parts> = routesOf(parts);

/** Returns the path prefixes under which a route is mounted. */
export function prefixesOf(route: Route): readonly string[] {
  if (['streams', 'mcp', 'a2a', 'pages'].includes(route.tag)) return [''];
  return route.tag === 'system' ? ['', apiPrefix] : [apiPrefix];
}

const limitHeaders = {
  'X-RateLimit-Limit': 'The maximum number of requests in any 60 seconds.',
  'X-RateLimit-Remaining': 'How many of these requests are left.',
  'X-RateLimit-Reset': 'Seconds until the oldest request counted leaves the window.',
  'X-RateLimit-Tier': 'The tier of the key: `free`, `pro` or `business`.',
};
const retryAfter = { 'Retry-After': 'Seconds until a request is allowed again.' };

/** The headers that any answer of a route with this status may have. */
function headersOf({ access }: Route, status: number): Record<string, string> {
  if (access === 'public' || status === 401) return {};
  return { ...limitHeaders, ...(status === 429 ? retryAfter : {}) };
}

/** Who may call a route, as its description says. */
function rightsOf(route: Route): string | undefined {
  const { access, alternative } = route as Route & HandoffRoute;
  if (access === 'public') return undefined;
  if (access === 'any') return 'Needs a valid key; each operation checks its rights.';
  if (access === 'admin') return 'Needs an admin key.';
  return `Needs a key with the scope \`${access}\`${alternative === undefined ? '' : ` or \`${alternative}\``}.`;
}

/** The service's OpenAPI description. */
export function describeHandoff(version: string): Record<string, unknown> {
  return describeApi({
    title: serviceTitle,
    version,
    securitySchemes: {
      apiKey: {
        type: 'apiKey',
        in: 'header',
        name: 'X-API-Key',
        description: 'An API key of a tenant. It has precedence if several are sent.',
      },
      bearer: { type: 'http', scheme: 'bearer', description: 'The same key as a bearer token.' },
    },
    description: [
      'Agents hand units of work (packets) to one another: create, claim, ask a person, complete, chain.',
      'A packet is `created` until an agent claims it, then `claimed`, `in_progress` while the agent works, `awaiting_human` while a person is asked, ' +
        'and finally `completed`, `failed` or `expired`. `PATCH` with a `status` moves it; an answer moves it from `awaiting_human` back to `claimed`.',
      "The API key in `X-API-Key`, or in `Authorization: Bearer`, belongs to one tenant. Another tenant's packets and keys answer 404, like ids that do not exist.",
      'What a key may do is restricted by its `scopes` (`read`, `work`, `respond`, `manage`, and `erase`, which no key has unless it is named), the `agents` that it may act as, and the `responder` in whose name it answers.',
      'To read a whole list, pass `next_cursor` as `cursor` until it is null.',
      'For 24 hours, a repeated request with the same `Idempotency-Key` gets the first answer again and changes nothing; with another body it gets 409. ' +
        '`If-Match` with the `ETag` last seen makes a change fail with 412 if the packet has changed since.',
      'History and audit entries name the actor, `agent:<id>`, `human:<name>`, `key:<id>` or `system:<job>`, and the key in `key_id`.',
      'Every 429 names its limit in `limit`; `Retry-After` says when a request is allowed again. A refused request is not counted.',
      'Every error has the body `Failure`: a sentence in `detail`, a `code` for programs, the `field` at fault, and the `status_code`.',
    ].join('\n\n'),
    parts: [{ routes: {}, schemas: { Failure } }, ...parts, ...otherParts],
    pathOf: (route) => prefixesOf(route)[0] + route.path,
    rightsOf,
    headersOf,
  });
}
