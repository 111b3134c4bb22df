import Type from 'typebox';

import { routeDefiner } from './route.ts';
import { Failure } from './schemas.ts';

const defineRoute = routeDefiner<{ access: 'public' }>();
const Alive = Type.Object({ status: Type.String({ example: 'ok' }) });
const ok = { status: 'ok' };
const broken = { schema: Failure, description: 'The service failed.' };
const unreadable = { schema: Failure, description: 'The request is not valid HTTP.' };

/** Liveness. */
export const health = defineRoute({
  id: 'health',
  method: 'GET',
  path: '/health',
  tag: 'system',
  access: 'public',
  summary: 'Whether the process runs',
  description: 'Liveness: an answer is all that is asked. A process that does not answer should be started anew.',
  responses: { 200: { schema: Alive, description: 'It runs.', example: ok }, 400: unreadable, 500: broken },
});

/** Readiness. */
export const ready = defineRoute({
  id: 'ready',
  method: 'GET',
  path: '/ready',
  tag: 'system',
  access: 'public',
  summary: 'Whether the database is connected',
  description: 'Readiness: requests should go to this instance only while it says yes.',
  responses: {
    200: { schema: Alive, description: 'It is.', example: ok },
    400: unreadable,
    503: { schema: Failure, description: 'It is not.' },
  },
});

/** Metrics. */
export const metrics = defineRoute({
  id: 'metrics',
  method: 'GET',
  path: '/metrics',
  tag: 'system',
  access: 'public',
  summary: 'Metrics in Prometheus text format',
  description:
    'Counters of requests and of what the service does, latencies by route, and gauges of the database and the queues. ' +
    'Open to everybody unless the service has a metrics token, which is then needed.',
  headers: { Authorization: '`Bearer` and the metrics token, where the service has one.' },
  responses: {
    200: {
      schema: Type.String(),
      contentType: 'text/plain; version=0.0.4; charset=utf-8',
      description: 'The metrics.',
      example: 'service_database_up 1',
    },
    400: unreadable,
    401: { schema: Failure, description: 'The metrics token is missing or wrong.' },
    500: broken,
  },
});
