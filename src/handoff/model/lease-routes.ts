import Type from 'typebox';

import { IdParams } from '../../kit/schemas.ts';
import { AgentId, failing, LeaseToken } from './common.ts';
import { Lease, RenewRequest } from './packet.ts';
import { defineRoute } from './route.ts';

const tag = 'packets';
const lease = { generation: 1, expires_at: '2026-03-01T09:35:00.000Z' };

export const renewLease = defineRoute({
  id: 'renewLease',
  method: 'POST',
  path: '/packets/{id}/lease',
  tag,
  access: 'work',
  summary: 'Renew a lease',
  description: "Restarts the lease from now. The packet's revision and history do not change.",
  params: IdParams,
  body: RenewRequest,
  bodyOptional: true,
  nullIsAbsent: true,
  bodyExample: { lease_seconds: 300 },
  headers: LeaseToken,
  responses: {
    200: { schema: Type.Object({ lease: Lease }), description: 'The lease.', example: { lease } },
    ...failing(401, 403, 404, 409, 413, 415, 429),
  },
});

export const endLease = defineRoute({
  id: 'endLease',
  method: 'DELETE',
  path: '/packets/{id}/lease',
  tag,
  access: 'work',
  summary: 'End a lease',
  description: 'Ends the lease and returns the packet to `created`, so that others can claim it.',
  params: IdParams,
  headers: { ...AgentId, ...LeaseToken },
  responses: { 204: { description: 'The packet is released.' }, ...failing(401, 403, 404, 409, 429) },
});
