import { describeApi } from '../../kit/openapi.ts';
import type { Route } from '../../kit/route.ts';
import { Failure } from '../../kit/schemas.ts';
import { systemRoutes } from '../../kit/system.ts';
import * as access from './access.ts';
import * as chainSchemas from './chain.ts';
import { chainRoutes } from './chain-routes.ts';
import { Warning } from './common.ts';
import * as exports from './export.ts';
import { Finding, findingRoutes } from './finding.ts';
import * as rehearsal from './rehearsal.ts';
import * as routing from './routing.ts';
import * as summary from './summary.ts';
import * as testSchemas from './test.ts';
import { testRoutes } from './test-routes.ts';

/** All routes of the service, by operation name. */
export const routes = {
  ...chainRoutes,
  ...routing.routingRoutes,
  ...findingRoutes,
  ...summary.summaryRoutes,
  ...testRoutes,
  ...rehearsal.rehearsalRoutes,
  ...exports.exportRoutes,
  ...access.accessRoutes,
  ...systemRoutes,
} as const;

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

/** Schemas that the description defines once and refers to. */
const schemas = {
  Failure,
  Warning,
  Provider: chainSchemas.Provider,
  ProviderRequest: chainSchemas.ProviderRequest,
  Rule: chainSchemas.Rule,
  RuleRequest: chainSchemas.RuleRequest,
  Chain: chainSchemas.Chain,
  ChainDefinition: chainSchemas.ChainDefinition,
  ChainRequest: chainSchemas.ChainRequest,
  ChainPatch: chainSchemas.ChainPatch,
  Finding,
  Decision: routing.Decision,
  WorstCase: routing.WorstCase,
  Step: routing.Step,
  Routing: routing.Routing,
  ChainCheck: routing.ChainCheck,
  LastTest: summary.LastTest,
  ChainSummary: summary.ChainSummary,
  Fault: testSchemas.Fault,
  TestRequest: testSchemas.TestRequest,
  Gateway: rehearsal.Gateway,
  Expected: rehearsal.Expected,
  Agreement: rehearsal.Agreement,
  Difference: rehearsal.Difference,
  RehearsalToken: rehearsal.RehearsalToken,
  Attempt: testSchemas.Attempt,
  PromptResult: testSchemas.PromptResult,
  Check: testSchemas.Check,
  TestResult: testSchemas.TestResult,
  Export: exports.Export,
  TemplateRequest: exports.TemplateRequest,
  TemplateOutput: exports.TemplateOutput,
  ImportRequest: exports.ImportRequest,
  Imported: exports.Imported,
  ImportPreview: exports.ImportPreview,
  AccessInfo: access.AccessInfo,
};

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
    tags: [
      { name: 'chains', description: 'Chains of providers and their rules.' },
      { name: 'tests', description: 'Test runs of a chain: simulated, drill, live.' },
      { name: 'exports', description: 'Chains in the formats of other programs.' },
      { name: 'system', description: 'Liveness, readiness, metrics.' },
    ],
    routes,
    schemas,
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
