import type { FastifyRequest } from 'fastify';

import { httpSpanEnd } from '../trace-context.ts';

/**
 * Ends the span of a request, if it has one: method, pattern of the path, status, id and caller, as in the log. Paths and
 * queries are left out, since they may have ids and keys.
 */
export function endSpan({ id, method, notes, routeOptions }: FastifyRequest, status: number): void {
  if (notes.span === undefined) return;
  const route = notes.route ?? routeOptions.url;
  const more = { 'baton.request_id': id, [`baton.${notes.callerField}`]: notes.caller };
  const failure = status >= 500 ? String(status) : undefined;
  notes.span.end(httpSpanEnd(method, { ...(route === undefined ? {} : { route }), status, failure, more }));
  notes.span = undefined;
}
