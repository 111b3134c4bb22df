import type { FastifyInstance } from 'fastify';

/** What a page may read of an answer besides the headers that every browser shows it. */
const exposed = [
  'ETag',
  'Location',
  'X-Total-Count',
  'X-Request-Id',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'X-RateLimit-Tier',
  'Retry-After',
  'Idempotency-Replayed',
].join(', ');

const preflightHeaders = {
  'Access-Control-Allow-Methods': 'GET, HEAD, POST, PATCH, PUT, DELETE',
  // Ten minutes: what Chromium allows at most is two hours, and a change of the settings should be noticed sooner.
  'Access-Control-Max-Age': '600',
};

/**
 * Lets pages of the given origins call the service (the CORS protocol of the Fetch standard, https://fetch.spec.whatwg.org);
 * `*` is every origin, an empty list none. A preflight is answered before admission: it carries no key and is not counted.
 * Cookies play no part, so no answer allows credentials.
 */
export function allowOrigins(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return;
  const all = origins.includes('*');
  const allowed = new Set(origins);
  app.addHook('onRequest', (request, reply, done) => {
    const { origin } = request.headers;
    if (!all) reply.header('Vary', 'Origin');
    if (origin === undefined || !(all || allowed.has(origin))) return done();
    reply.header('Access-Control-Allow-Origin', all ? '*' : origin);
    if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) {
      reply.header('Access-Control-Expose-Headers', exposed);
      return done();
    }
    // Any header may be sent: which of them count is decided where they are read.
    const asked = request.headers['access-control-request-headers'];
    if (asked !== undefined) reply.header('Access-Control-Allow-Headers', asked);
    reply.code(204).headers(preflightHeaders).send();
  });
}
