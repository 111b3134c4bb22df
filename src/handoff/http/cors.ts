import cors from '@fastify/cors';
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
  'X-RateLimit-Tier',
];

/**
 * Lets pages of the given origins call the service. `*` allows all origins, an empty list none. A preflight is answered before
 * admission: it has no key and is not counted. The service uses no cookies for such pages, so no response allows credentials.
 */
export function allowOrigins(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return;
  const options = {
    origin: [...origins],
    methods: ['GET', 'HEAD', 'POST', 'PATCH', 'PUT', 'DELETE'],
    exposedHeaders: exposed,
    // Ten minutes. Chromium would allow two hours, but a change of the settings should take effect sooner.
    maxAge: 600,
  };
  app.register(cors, {
    delegator: ({ headers }, done) =>
      // An OPTIONS request that is no preflight is answered as without CORS.
      done(null, { ...options, preflight: headers.origin !== undefined && headers['access-control-request-method'] !== undefined }),
  });
}
