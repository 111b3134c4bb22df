import Type, { type Static } from 'typebox';

import { routeTable } from '../../kit/route.ts';
import { orNull, UsedUp } from '../../kit/schemas.ts';
import { AgentId, failing, IdempotencyKey, Replayed } from './common.ts';
import { violation } from './contract.ts';
import { type ErrorCode, Failure } from './errors.ts';
import { claimedExample, completedExample, createExample, packetExample } from './examples.ts';
import { BatchClaimRequest, BatchCompleteRequest, BatchCreateRequest, BatchCreateShape, Packet } from './packet.ts';
import { Holder } from './packet-routes.ts';
import { defineRoute } from './route.ts';

const ItemFault = Type.Object({ error: Type.String(), code: Type.String(), limit: Type.Optional(UsedUp) });
/** The error of a refused item of a batch, with what else the error has. */
export type ItemFault = Static<typeof ItemFault> & Readonly<Record<string, unknown>>;
const BatchFault = Type.Object({
  index: Type.Integer({ description: 'The index of the packet in the request, from 0.' }),
  ...ItemFault.properties,
  ...violation,
  field: orNull(Type.String()),
});
const BatchCreated = Type.Object({ created: Type.Array(Packet), errors: Type.Array(BatchFault) });

const { errors: _, ...failure } = Failure.properties;
/** The error body of a batch in which every packet was refused. */
const BatchRefused = Type.Object(
  { ...failure, created: Type.Array(Packet, { maxItems: 0 }), errors: Type.Array(BatchFault) },
  { description: 'The error body, with an entry in `errors` for each packet of the batch.' },
);
const refused = (status: 400 | 429, code: ErrorCode, detail: string, field: string | null, error: string) => ({
  schema: Type.Union([BatchRefused, Failure]),
  description: 'The batch is refused, or every one of its packets is.',
  example: { detail, code, field, status_code: status, request_id: '2s-1', created: [], errors: [{ index: 0, error, code, field: null }] },
});
const PacketFault = Type.Object({ packet_id: Type.String(), ...ItemFault.properties, claimed_by: Type.Optional(orNull(Holder)) });
const quotaReached = 'The tenant has created the 5 packets it may create per day; the next UTC day begins in 3600 seconds.';
const batchSize = 'At most 100 in one request, unless the service is configured otherwise.';

/** The routes of batches. */
const batchRoutes = routeTable('packets', {
  batchCreate: defineRoute({
    method: 'POST',
    path: '/packets/batch',
    access: 'work',
    summary: 'Create many packets',
    description: `Each packet is created or refused independently; refused packets are listed in \`errors\` by index. ${batchSize}`,
    body: BatchCreateRequest,
    describedBody: BatchCreateShape,
    bodyExample: { packets: [createExample] },
    bodySize: 'batch',
    reportsDailyQuota: true,
    headers: { ...IdempotencyKey, ...AgentId },
    responses: {
      201: {
        schema: BatchCreated,
        description: 'The packets created and those refused.',
        headers: Replayed,
        example: { created: [packetExample], errors: [] },
      },
      ...failing(401, 403, 409, 413, 415),
      400: refused(400, 'VALIDATION_ERROR', 'None of the packets could be created; see errors.', 'packets', 'metadata is required.'),
      429: refused(429, 'RATE_LIMITED', quotaReached, null, quotaReached),
    },
  }),
  batchClaim: defineRoute({
    method: 'POST',
    path: '/packets/batch/claim',
    access: 'work',
    summary: 'Claim many packets',
    description: `Claims each packet independently; packets that are not free are listed in \`errors\` with their holders. ${batchSize}`,
    body: BatchClaimRequest,
    bodyExample: { packet_ids: [packetExample.id], agent_id: 'resolver' },
    nullIsAbsent: true,
    responses: {
      200: {
        schema: Type.Object({ claimed: Type.Array(Packet), errors: Type.Array(PacketFault) }),
        description: 'The packets claimed and those refused.',
        example: { claimed: [claimedExample], errors: [] },
      },
      ...failing(401, 403, 413, 415, 429),
    },
  }),
  batchComplete: defineRoute({
    method: 'POST',
    path: '/packets/batch/complete',
    access: 'work',
    summary: 'Complete many packets',
    description: `Completes each packet independently; packets that can't be completed are listed in \`errors\`. ${batchSize}`,
    body: BatchCompleteRequest,
    bodyExample: { packet_ids: [packetExample.id], agent_id: 'resolver' },
    nullIsAbsent: true,
    headers: AgentId,
    responses: {
      200: {
        schema: Type.Object({ completed: Type.Array(Packet), errors: Type.Array(PacketFault) }),
        description: 'The packets completed and those refused.',
        example: { completed: [completedExample], errors: [] },
      },
      ...failing(401, 403, 413, 415, 429),
    },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const batchApi = {
  routes: batchRoutes,
  schemas: { BatchRefused, BatchCreateRequest: BatchCreateShape, BatchClaimRequest, BatchCompleteRequest },
};
