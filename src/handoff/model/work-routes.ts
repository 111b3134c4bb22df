import Type, { type Static } from 'typebox';

import { IdParams, IfMatch, paging, timestamp } from '../../kit/schemas.ts';
import { AgentId, failing, IdempotencyKey, LeaseToken, Replayed } from './common.ts';
import { claimedExample, packetExample } from './examples.ts';
import { ClaimNextRequest, Lease, Packet, RenewRequest } from './packet.ts';
import { defineRoute } from './route.ts';

const tag = 'packets';
const ETag = { ETag: 'The revision of the packet, for `If-Match` and `If-None-Match`.' };
const lease = { generation: 1, expires_at: '2026-03-01T09:35:00.000Z' };

export const claimNext = defineRoute({
  id: 'claimNext',
  method: 'POST',
  path: '/packets/claim-next',
  tag,
  access: 'key',
  summary: 'Claim the next packet that waits',
  description:
    'Takes a `created` packet for the agent: the highest priority first, then the oldest. With `wait_seconds` the request waits for one; waiting requests are served in turn and count towards the connections of the tenant. A packet is never given to a request whose connection is gone.',
  body: ClaimNextRequest,
  bodyExample: { agent_id: 'resolver', wait_seconds: 30, lease_seconds: 300 },
  nullIsAbsent: true,
  headers: IdempotencyKey,
  responses: {
    200: {
      schema: Packet,
      description: 'The packet, claimed.',
      example: { ...claimedExample, lease: { token: 'lease_...', ...lease } },
      headers: { ...ETag, ...Replayed },
    },
    204: { description: 'No packet came in time.' },
    ...failing(401, 409, 413, 415, 429),
  },
});

export const releasePacket = defineRoute({
  id: 'releasePacket',
  method: 'POST',
  path: '/packets/{id}/release',
  tag,
  access: 'key',
  summary: 'Release a packet',
  description:
    'Gives a `claimed` or `in_progress` packet back: it is `created` again, for others to claim. By its holder, named in `X-Agent-Id`, or with an admin key; a leased packet needs its token.',
  params: IdParams,
  headers: { ...AgentId, ...LeaseToken, ...IfMatch },
  responses: {
    200: { schema: Packet, description: 'The packet, free again.', example: packetExample, headers: ETag },
    ...failing(401, 403, 404, 409, 412, 429),
  },
});

export const renewLease = defineRoute({
  id: 'renewLease',
  method: 'POST',
  path: '/packets/{id}/lease',
  tag,
  access: 'key',
  summary: 'Renew a lease',
  description: 'The lease runs anew from now. The packet keeps its revision, and its history says nothing of it.',
  params: IdParams,
  body: RenewRequest,
  bodyOptional: true,
  nullIsAbsent: true,
  bodyExample: { lease_seconds: 300 },
  headers: LeaseToken,
  responses: {
    200: { schema: Type.Object({ lease: Lease }), description: 'The lease.', example: { lease } },
    ...failing(401, 404, 409, 413, 415, 429),
  },
});

export const endLease = defineRoute({
  id: 'endLease',
  method: 'DELETE',
  path: '/packets/{id}/lease',
  tag,
  access: 'key',
  summary: 'Give a leased packet back',
  description: 'Ends the lease: the packet is `created` again, for others to claim.',
  params: IdParams,
  headers: { ...AgentId, ...LeaseToken },
  responses: { 204: { description: 'The packet is free again.' }, ...failing(401, 404, 409, 429) },
});

/** An agent as a tenant's requests have named it. */
export const Agent = Type.Object({
  agent_id: Type.String(),
  last_seen_at: timestamp('When it was last named: as source, as claimant or in X-Agent-Id.'),
  holding: Type.Integer({ description: 'Packets that it has claimed and not ended.' }),
  waiting: Type.Integer({ description: 'Packets in `created` that are aimed at it.' }),
});
export type Agent = Static<typeof Agent>;

export const AgentQuery = Type.Object(paging(), { additionalProperties: false });

export const listAgents = defineRoute({
  id: 'listAgents',
  method: 'GET',
  path: '/agents',
  tag: 'agents',
  access: 'key',
  summary: 'List agents',
  description: 'The agents that requests of the tenant have named, the latest seen first.',
  query: AgentQuery,
  responses: {
    200: {
      schema: Type.Object({ agents: Type.Array(Agent), total: Type.Integer(), limit: Type.Integer(), offset: Type.Integer() }),
      description: 'The agents.',
      example: {
        agents: [{ agent_id: 'resolver', last_seen_at: '2026-03-01T09:30:00.000Z', holding: 2, waiting: 5 }],
        total: 1,
        limit: 50,
        offset: 0,
      },
    },
    ...failing(401, 429),
  },
});
