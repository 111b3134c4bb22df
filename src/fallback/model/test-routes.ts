import Type from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { defaulted, IdParams, object } from '../../kit/schemas.ts';
import { exampleId, failing, Location, whole } from './common.ts';
import { defineRoute } from './route.ts';
import { TestPlan, TestRequest, TestResult, testExample, testSchemas } from './test.ts';

const result = (description: string, example: unknown = testExample) => ({ schema: TestResult, description, example });

const events = [
  'event: progress',
  `data: {"id":"${exampleId}","status":"running","progress":{"done":1,"total":5},"success_count":1,"failure_count":0,"fallback_count":0,"verdict":null}`,
  '',
  '',
].join('\n');

/** The routes of tests. */
const testRoutes = routeTable('tests', {
  runTest: defineRoute({
    method: 'POST',
    path: '/chains/{id}/test',
    access: 'write',
    summary: 'Run a test',
    description:
      'Answers with the finished result. With `Prefer: respond-async` it answers 202 at once, and the result or its events can be read while the test runs. The test uses a snapshot of the chain. `drill`, `live` and `rehearsal` need a service started with `--allow-live`.',
    params: IdParams,
    query: object({
      dry_run: defaulted(
        Type.Boolean({
          default: false,
          description: 'Only validate the test, and answer 200 with the maximum number of calls that it can make.',
        }),
      ),
    }),
    body: TestRequest,
    bodyOptional: true,
    bodyExample: { prompt_count: 5 },
    headers: { Prefer: '`respond-async` for an answer before the test has ended (RFC 7240). Optional.' },
    responses: {
      200: {
        schema: TestPlan,
        description: 'With `dry_run`: what the test would do at most. Nothing is started.',
        example: { mode: 'live', preset: null, prompt_count: 5, max_calls: 25, max_calls_per_prompt: 5 },
      },
      201: { ...result('The finished result.'), headers: Location },
      202: {
        ...result('The test is running.', {
          ...testExample,
          status: 'running',
          completed_at: null,
          duration_ms: null,
          verdict: null,
          checks: [],
        }),
        headers: { ...Location, 'Preference-Applied': '`respond-async`.' },
      },
      ...failing(401, 403, 404, 413, 415, 429),
    },
  }),
  getTestResult: defineRoute({
    method: 'GET',
    path: '/test-results/{id}',
    access: 'read',
    summary: 'Get test results',
    description:
      "For a test's id its result; for a chain's id an array of the chain's results, newest first. A page over 16 MiB ends early, and `Link` has the next page. Results outlive changes and deletion of the chain.",
    params: IdParams,
    query: object({
      limit: defaulted(whole(1, 200, "The maximum number of results for a chain's id.", { default: 20 })),
      offset: defaulted(whole(0, 1_000_000_000, 'How many results to skip.', { default: 0 })),
      prompts: defaulted(Type.Boolean({ default: true, description: 'Whether to include the prompts; otherwise `results` is empty.' })),
    }),
    responses: {
      200: {
        schema: Type.Union([TestResult, Type.Array(TestResult)]),
        description: "The result, or the chain's results, newest first.",
        example: testExample,
        headers: {
          'X-Total-Count': 'The total number of items.',
          Link: 'The path of the next page (`rel="next"`, RFC 8288), if there is one.',
        },
      },
      ...failing(401, 404, 429),
    },
  }),
  cancelTest: defineRoute({
    method: 'DELETE',
    path: '/test-results/{id}',
    access: 'write',
    summary: 'Cancel a running test',
    description: 'The result stays as `cancelled`, with the finished prompts. A test that has ended gives 409.',
    params: IdParams,
    responses: {
      200: result('The result of the cancelled test.', { ...testExample, status: 'cancelled' }),
      ...failing(401, 403, 404, 409, 429),
    },
  }),
  testEvents: defineRoute({
    method: 'GET',
    path: '/test-results/{id}/events',
    access: 'read',
    summary: 'Follow a running test',
    description:
      'Server-sent events, each with the `id`, `status`, `progress`, `success_count`, `failure_count`, `fallback_count` and `verdict` of the result: `progress` while the test runs, then `end`, after which the connection closes. A test that has ended gives `end` at once.',
    params: IdParams,
    responses: {
      200: { schema: Type.String(), contentType: 'text/event-stream', description: 'The events.', example: events },
      ...failing(401, 404, 429),
    },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const testApi = {
  tag: { name: 'tests', description: 'Test runs of a chain: simulations, drills, live tests and rehearsals.' },
  routes: testRoutes,
  schemas: testSchemas,
};
