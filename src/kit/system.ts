import Type, { type TSchema } from 'typebox';

import { routeDefiner, routeTable } from './route.ts';

const defineRoute = routeDefiner<{ access: 'public' }>();
const Alive = Type.Object({ status: Type.String({ example: 'ok' }) });
const ok = { status: 'ok' };

export type SystemRoutes = ReturnType<typeof systemRoutesOf>;

/** The routes of liveness, readiness and metrics, which every service has. `failure`: the schema of its error bodies. */
export function systemRoutesOf(failure: TSchema) {
  const broken = { schema: failure, description: 'The service failed.' };
  const unreadable = { schema: failure, description: 'The request is not valid HTTP.' };
  return routeTable('system', {
    /** Liveness. */
    health: defineRoute({
      method: 'GET',
      path: '/health',
      access: 'public',
      summary: 'Whether the process runs',
      description: 'Liveness. Restart a process that does not answer.',
      responses: { 200: { schema: Alive, description: 'The process runs.', example: ok }, 400: unreadable, 500: broken },
    }),
    /** Readiness. */
    ready: defineRoute({
      method: 'GET',
      path: '/ready',
      access: 'public',
      summary: 'Whether the database answers, and has space',
      description:
        'Readiness: the database is connected, and writes find space on its disk. Send requests to this instance only while it answers 200.',
      responses: {
        200: { schema: Alive, description: 'It is.', example: ok },
        400: unreadable,
        503: { schema: failure, description: 'The database is not connected, or its disk is full.' },
      },
    }),
    /** Metrics. */
    metrics: defineRoute({
      method: 'GET',
      path: '/metrics',
      access: 'public',
      summary: 'Metrics in Prometheus text format',
      description:
        'Counters of requests and of what the service does, latencies by route, and gauges of the database and the queues. ' +
        'Public, unless the service has a metrics token.',
      headers: { Authorization: '`Bearer` and the metrics token, if the service has one.' },
      responses: {
        200: {
          schema: Type.String(),
          contentType: 'text/plain; version=0.0.4; charset=utf-8',
          description: 'The metrics.',
          example: 'service_database_up 1',
        },
        400: unreadable,
        401: { schema: failure, description: 'The metrics token is missing or wrong.' },
        500: broken,
      },
    }),
  });
}
