import type { FastifyRequest } from 'fastify';

import { httpSpanEnd } from '../trace-context.ts';

/**
 * Ends the span of a request, if it has one: method, pattern of the path, status, id and caller, as in the log. Paths and
 * queries are left out, since they may have ids and keys.
 */
export function endSpan({ id, method, info, routeOptions }: FastifyRequest, status: number): void {
  if (info.span === undefined) return;
  const route = info.route ?? routeOptions.url;
  const more = { 'baton.request_id': id, [`baton.${info.callerField}`]: info.caller };
  const failure = status >= 500 ? String(status) : undefined;
  info.span.end(httpSpanEnd(method, { ...(route === undefined ? {} : { route }), status, failure, more }));
  info.span = undefined;
}
