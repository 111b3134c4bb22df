import type { FastifyInstance } from 'fastify';

/** Response headers that pages may read besides the CORS-safelisted ones. */
const exposed = [
  'ETag',
  'Location',
  'X-Total-Count',
  'X-Request-Id',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'Retry-After',
  'Idempotency-Replayed',
  'traceparent',
  'tracestate',
];

const preflightHeaders = {
  'Access-Control-Allow-Methods': 'GET, HEAD, POST, PATCH, PUT, DELETE',
  // Ten minutes. Chromium would allow two hours, but a change of the settings should take effect sooner.
  'Access-Control-Max-Age': '600',
};

/**
 * Lets pages of the given origins call the service (the CORS protocol of the Fetch standard, https://fetch.spec.whatwg.org).
 * `*` allows all origins, an empty list none. A preflight is answered before admission: it has no key and is not counted.
 * The service uses no cookies, so no response allows credentials.
 */
export function allowOrigins(app: FastifyInstance, origins: readonly string[], ownHeaders: readonly string[]): void {
  if (origins.length === 0) return;
  const all = origins.includes('*');
  const allowed = new Set(origins);
  app.addHook('onRequest', (request, reply, done) => {
    const { origin } = request.headers;
    if (!all) reply.header('Vary', 'Origin');
    if (origin === undefined || !(all || allowed.has(origin))) return done();
    reply.header('Access-Control-Allow-Origin', all ? '*' : origin);
    if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) {
      reply.header('Access-Control-Expose-Headers', [...exposed, ...ownHeaders].join(', '));
      return done();
    }
    // All request headers are allowed; the service ignores those it does not know.
    const asked = request.headers['access-control-request-headers'];
    if (asked !== undefined) reply.header('Access-Control-Allow-Headers', asked);
    reply.code(204).headers(preflightHeaders).send();
  });
}
