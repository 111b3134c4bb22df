import { describeApi } from '../../kit/openapi.ts';
import { type Route, type RoutesOf, routesOf } from '../../kit/route.ts';

import { systemRoutesOf } from '../../kit/system.ts';
import { accessApi } from './access.ts';
import { chainApi } from './chain-routes.ts';
import { Warning } from './common.ts';
import { Failure } from './errors.ts';
import { exportApi } from './export.ts';
import { findingApi } from './finding.ts';
import { rehearsalApi } from './rehearsal.ts';
import { routingApi } from './routing.ts';
import { summaryApi } from './summary.ts';
import { testApi } from './test-routes.ts';

const systemApi = {
  tag: { name: 'system', description: 'Liveness, readiness, metrics.' },
  routes: systemRoutesOf(Failure),
  schemas: {},
};

/** What each noun declares of the API. */
export const parts = [chainApi, routingApi, findingApi, summaryApi, testApi, rehearsalApi, exportApi, accessApi, systemApi] as const;

/** All routes of the service, by operation name. Its type has a name: so the declarations hold the types of the routes once. */
export const routes: RoutesOf<typeof parts> = routesOf(parts);

const limitHeaders = {
  'X-RateLimit-Limit': 'The maximum number of requests in the period, if a limit is set.',
  'X-RateLimit-Remaining': 'The remaining requests.',
  'X-RateLimit-Reset': 'Seconds until the oldest counted request leaves the window.',
};
const retryAfter = { 'Retry-After': 'Seconds until a request is accepted again.' };

/** The headers that a response of a route with this status may have. */
function headersOf({ access }: Route, status: number): Record<string, string> {
  if (access === 'public') return {};
  return { ...limitHeaders, ...(status === 429 ? retryAfter : {}) };
}

/** The service's OpenAPI description. */
export function describeFallback(version: string): Record<string, unknown> {
  return describeApi({
    title: 'Baton fallback chain service',
    version,
    description: [
      'Stores, explains, tests and exports chains of AI model providers, with rules for what happens when one fails.',
      'If keys are configured, send one in `X-API-Key`, as a bearer token, or as the query parameter `api_key`.',
      'Every error has the body `Failure`: a sentence in `detail`, a `code`, the invalid `field`, and the `status_code`.',
    ].join('\n\n'),
    parts: [{ routes: {}, schemas: { Failure, Warning } }, ...parts],
    pathOf: (route) => route.path,
    securitySchemes: {
      apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key', description: 'An API key. It has precedence if several are sent.' },
      bearer: { type: 'http', scheme: 'bearer', description: 'The same key as a bearer token.' },
      parameter: {
        type: 'apiKey',
        in: 'query',
        name: 'api_key',
        description: 'The same key as a query parameter, for clients that can send no header.',
      },
    },
    headersOf,
  });
}
