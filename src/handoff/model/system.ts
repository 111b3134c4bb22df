import Type from 'typebox';

import { defineRoute } from '../../kit/route.ts';
import { Failure } from './common.ts';

const Alive = Type.Object({ status: Type.String({ example: 'ok' }) });
const ok = { status: 'ok' };
const broken = { schema: Failure, description: 'The service failed.' };

export const health = defineRoute({
  id: 'health', method: 'GET', path: '/health', tag: 'system', access: 'public', summary: 'Whether the process runs',
  responses: { 200: { schema: Alive, description: 'It runs.', example: ok }, 500: broken },
});
export const ready = defineRoute({
  id: 'ready', method: 'GET', path: '/ready', tag: 'system', access: 'public', summary: 'Whether the database is connected',
  responses: { 200: { schema: Alive, description: 'It is.', example: ok }, 503: { schema: Failure, description: 'It is not.' } },
});
export const metrics = defineRoute({
  id: 'metrics', method: 'GET', path: '/metrics', tag: 'system', access: 'public', summary: 'Metrics in Prometheus text format',
  responses: { 200: { schema: Type.String(), contentType: 'text/plain; version=0.0.4; charset=utf-8', description: 'The metrics.', example: 'service_active_packets 3' }, 500: broken },
});
