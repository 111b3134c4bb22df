import { notFound } from '../../kit/errors.ts';
import { HttpResponse, JsonText } from '../../kit/http/response.ts';
import type { Streams } from '../../kit/http/streams.ts';
import { OwnerQuota } from '../../kit/owner-quota.ts';
import type { TestService } from '../service/tests.ts';
import { testEvents } from './events.ts';
import { handlersOf } from './handlers.ts';

/** The handlers of the routes of tests, of their results, and of the summary of a chain. */
export function testHandlers({ tests, streams }: { tests: TestService; streams: Streams }) {
  const connections = new OwnerQuota();
  return handlersOf({
    getSummary: ({ params }) => tests.summary(params.id),
    runTest: async ({ params, query, body }, { caller, headers, origin }) => {
      if (query.dry_run) return tests.plan(params.id, body ?? {}, origin);
      const started = await tests.start(params.id, body ?? {}, caller.id, origin);
      const location = `/test-results/${started.id}`;
      if (isAsync(headers.prefer)) {
        return new HttpResponse<never>({
          status: 202,
          headers: { location, 'preference-applied': 'respond-async' },
          body: new JsonText(started.record.text()),
        });
      }
      return new HttpResponse<never>({ status: 201, headers: { location }, body: new JsonText(await started.ended) });
    },
    getTestResult: async ({ params, query }) => {
      const text = await tests.find(params.id, query);
      if (text !== undefined) return new HttpResponse<never>({ body: new JsonText(text) });
      const page = await tests.ofChain(params.id, query);
      if (page === undefined) throw notFound('test result');
      const next = query.offset + page.texts.length;
      const headers = {
        'x-total-count': String(page.total),
        ...(next < page.total ? { link: nextLink(params.id, { ...query, offset: next }) } : {}),
      };
      return new HttpResponse<never>({ headers, body: new JsonText(`[${page.texts.join(',')}]`) });
    },
    testEvents: ({ params }, { caller }) => testEvents(params.id, caller, { tests, streams, connections }),
    cancelTest: async ({ params }) => new HttpResponse<never>({ body: new JsonText(await tests.cancel(params.id)) }),
  });
}

/** The Link header (RFC 8288) for the next page. */
function nextLink(id: string, { limit, offset, prompts }: { limit: number; offset: number; prompts: boolean }): string {
  return `</test-results/${id}?limit=${limit}&offset=${offset}${prompts ? '' : '&prompts=false'}>; rel="next"`;
}

/** Whether a Prefer header requests an answer before the test has run (`respond-async`, RFC 7240, 4.1). */
function isAsync(prefer: string | string[] | undefined): boolean {
  return [prefer ?? []]
    .flat()
    .flatMap((line) => line.split(','))
    .some((preference) => preference.split(';', 1)[0]!.trim().toLowerCase() === 'respond-async');
}
