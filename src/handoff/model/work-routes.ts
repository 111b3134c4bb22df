import Type from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { IdParams, IfMatch } from '../../kit/schemas.ts';
import { AgentId, failing, IdempotencyKey, LeaseToken, Replayed, TraceOfPacket } from './common.ts';
import { claimedExample, packetExample } from './examples.ts';
import { ClaimNextRequest, Lease, RenewRequest } from './packet.ts';
import { packet } from './packet-routes.ts';
import { defineRoute } from './route.ts';

const lease = { generation: 1, expires_at: '2026-03-01T09:35:00.000Z' };

/** The routes of claims of the next packet, releases, withdrawn questions and leases. */
const workRoutes = routeTable('packets', {
  claimNext: defineRoute({
    method: 'POST',
    path: '/packets/claim-next',
    access: 'work',
    summary: 'Claim the next packet',
    description:
      "Claims a `created` packet for the agent: the highest priority first, then the oldest. With `wait_seconds` the request waits until one is available; waiting requests are served in order of arrival and count towards the tenant's connections. A request whose connection has closed is never given a packet.",
    body: ClaimNextRequest,
    bodyExample: { agent_id: 'resolver', wait_seconds: 30, lease_seconds: 300 },
    nullIsAbsent: true,
    headers: IdempotencyKey,
    responses: {
      200: packet('The claimed packet.', { ...claimedExample, lease: { token: 'lease_...', ...lease } }, { ...Replayed, ...TraceOfPacket }),
      204: { description: 'No packet was available in time.' },
      ...failing(401, 403, 409, 413, 415, 429),
    },
  }),
  withdrawQuestion: defineRoute({
    method: 'DELETE',
    path: '/packets/{id}/question',
    access: 'work',
    summary: 'Withdraw a question',
    description:
      'Withdraws the open question of a packet, which goes back to its holder as `claimed`, or to `created` if nobody holds it, without a question. Needs no lease token; with `If-Match` it withdraws only the question that the caller has seen.',
    params: IdParams,
    headers: { ...AgentId, ...IfMatch },
    responses: { 200: packet('The packet without its question.', claimedExample), ...failing(401, 403, 404, 409, 412, 429) },
  }),
  releasePacket: defineRoute({
    method: 'POST',
    path: '/packets/{id}/release',
    access: 'work',
    summary: 'Release a packet',
    description:
      'Returns a `claimed` or `in_progress` packet to `created`, so that others can claim it. Only its holder, named in `X-Agent-Id`, or an admin key may release a packet; a leased packet needs its lease token.',
    params: IdParams,
    headers: { ...AgentId, ...LeaseToken, ...IfMatch },
    responses: { 200: packet('The released packet.', packetExample), ...failing(401, 403, 404, 409, 412, 429) },
  }),
  renewLease: defineRoute({
    method: 'POST',
    path: '/packets/{id}/lease',
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
  }),
  endLease: defineRoute({
    method: 'DELETE',
    path: '/packets/{id}/lease',
    access: 'work',
    summary: 'End a lease',
    description: 'Ends the lease and returns the packet to `created`, so that others can claim it.',
    params: IdParams,
    headers: { ...AgentId, ...LeaseToken },
    responses: { 204: { description: 'The packet is released.' }, ...failing(401, 403, 404, 409, 429) },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const workApi = { routes: workRoutes, schemas: {} };
