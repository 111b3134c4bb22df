import { IdParams, IfMatch } from '../../kit/schemas.ts';
import { AgentId, failing, IdempotencyKey, LeaseToken, Replayed } from './common.ts';
import { claimedExample, packetExample } from './examples.ts';
import { ClaimNextRequest, Packet } from './packet.ts';
import { defineRoute } from './route.ts';

const tag = 'packets';
const ETag = { ETag: 'The revision of the packet, for `If-Match` and `If-None-Match`.' };
const lease = { generation: 1, expires_at: '2026-03-01T09:35:00.000Z' };

export const claimNext = defineRoute({
  id: 'claimNext',
  method: 'POST',
  path: '/packets/claim-next',
  tag,
  access: 'work',
  summary: 'Claim the next packet',
  description:
    "Claims a `created` packet for the agent: the highest priority first, then the oldest. With `wait_seconds` the request waits until one is available; waiting requests are served in order of arrival and count towards the tenant's connections. A request whose connection has closed is never given a packet.",
  body: ClaimNextRequest,
  bodyExample: { agent_id: 'resolver', wait_seconds: 30, lease_seconds: 300 },
  nullIsAbsent: true,
  headers: IdempotencyKey,
  responses: {
    200: {
      schema: Packet,
      description: 'The claimed packet.',
      example: { ...claimedExample, lease: { token: 'lease_...', ...lease } },
      headers: { ...ETag, ...Replayed },
    },
    204: { description: 'No packet was available in time.' },
    ...failing(401, 403, 409, 413, 415, 429),
  },
});

export const withdrawQuestion = defineRoute({
  id: 'withdrawQuestion',
  method: 'DELETE',
  path: '/packets/{id}/question',
  tag,
  access: 'work',
  summary: 'Withdraw a question',
  description:
    'Withdraws the open question of a packet, which goes back to its holder as `claimed`, or to `created` if nobody holds it, without a question. Needs no lease token; with `If-Match` it withdraws only the question that the caller has seen.',
  params: IdParams,
  headers: { ...AgentId, ...IfMatch },
  responses: {
    200: { schema: Packet, description: 'The packet without its question.', example: claimedExample, headers: ETag },
    ...failing(401, 403, 404, 409, 412, 429),
  },
});

export const releasePacket = defineRoute({
  id: 'releasePacket',
  method: 'POST',
  path: '/packets/{id}/release',
  tag,
  access: 'work',
  summary: 'Release a packet',
  description:
    'Returns a `claimed` or `in_progress` packet to `created`, so that others can claim it. Only its holder, named in `X-Agent-Id`, or an admin key may release a packet; a leased packet needs its lease token.',
  params: IdParams,
  headers: { ...AgentId, ...LeaseToken, ...IfMatch },
  responses: {
    200: { schema: Packet, description: 'The released packet.', example: packetExample, headers: ETag },
    ...failing(401, 403, 404, 409, 412, 429),
  },
});
