import Type, { type Static } from 'typebox';

import { defineRoute } from '../../kit/route.ts';
import {
  AgentId,
  choice,
  Failure,
  failing,
  Id,
  IdempotencyKey,
  IdParams,
  IfMatch,
  orNull,
  paging,
  priorities,
  timestamp,
} from './common.ts';
import { createExample, packetExample, summaryExample } from './examples.ts';
import {
  BatchClaimRequest,
  BatchCompleteRequest,
  BatchCreateRequest,
  ChainRequest,
  ClaimRequest,
  CreateRequest,
  HistoryEvent,
  Packet,
  PacketSummary,
  PatchRequest,
  RespondRequest,
} from './packet.ts';

const packet = (description: string) => ({ schema: Packet, description, example: packetExample });

const listFilters = {
  status: Type.Optional(Type.String({ description: 'Statuses, comma-separated; any of them.', example: 'created,claimed' })),
  source_agent: Type.Optional(Type.String({ description: "The source agent's id." })),
  target_agent: Type.Optional(Type.String({ description: "The target agent's id." })),
  tags: Type.Optional(Type.String({ description: 'Tags, comma-separated; all of them.', example: 'billing,urgent' })),
  priority: Type.Optional(choice(priorities, { description: 'The priority.' })),
  hitl_required: Type.Optional(Type.Boolean({ description: 'Whether the packet has a checkpoint that requires a person.' })),
  created_after: Type.Optional(timestamp('Created at or after this moment.')),
  created_before: Type.Optional(timestamp('Created at or before this moment.')),
};

const cursor = Type.Optional(Type.String({ maxLength: 1024, description: 'The `next_cursor` of the page before; not together with `offset`.' }));
const view = Type.Optional(choice(['summary', 'full'], { description: 'Whole packets instead of summaries.' }));

export const PacketQuery = Type.Object({ ...listFilters, ...paging(), cursor, view }, { additionalProperties: false });
const AwaitingQuery = Type.Object({ ...paging(), cursor, view }, { additionalProperties: false });
export type PacketQuery = Static<typeof PacketQuery>;

export const SearchQuery = Type.Object(
  {
    q: Type.String({ description: 'Words, and "phrases in quotes"; all of them must occur.', example: 'refund "gold member"' }),
    status: listFilters.status,
    priority: listFilters.priority,
    ...paging(),
  },
  { additionalProperties: false },
);
export type SearchQuery = Static<typeof SearchQuery>;

const page = { total: Type.Integer(), limit: Type.Integer(), offset: Type.Integer(), next_cursor: orNull(Type.String()) };
const PacketList = Type.Object({ packets: Type.Array(Type.Union([PacketSummary, Packet])), ...page });
const pageExample = { packets: [summaryExample], total: 1, limit: 50, offset: 0, next_cursor: null };

const SearchList = Type.Object({
  packets: Type.Array(Type.Intersect([PacketSummary, Type.Object({ snippet: Type.String({ description: 'The words found, in their surroundings.' }) })])),
  ...page,
});

const ItemFault = { error: Type.String(), code: Type.String() };
const Claimed = Type.Object({ agent_id: Type.String(), agent_name: Type.String(), framework: orNull(Type.String()), claimed_at: orNull(timestamp('When.')) });
const BatchCreated = Type.Object({
  created: Type.Array(Packet),
  errors: Type.Array(Type.Object({ index: Type.Integer(), ...ItemFault, field: orNull(Type.String()) })),
});
const PacketFault = Type.Object({ packet_id: Type.String(), ...ItemFault, claimed_by: Type.Optional(orNull(Claimed)) });
const ClaimConflict = Type.Interface([Failure], { claimed_by: Type.Optional(orNull(Claimed)) });

const tag = 'packets';

export const createPacket = defineRoute({
  id: 'createPacket', method: 'POST', path: '/packets', tag, access: 'key', summary: 'Create a packet',
  description: 'Hands a unit of work to another agent. The packet starts as `created`.',
  body: CreateRequest, bodyExample: createExample, nullIsAbsent: true, capped: true, headers: { ...IdempotencyKey, ...AgentId },
  responses: { 201: packet('The packet.'), ...failing(400, 401, 409, 413, 415, 429) },
});

export const listPackets = defineRoute({
  id: 'listPackets', method: 'GET', path: '/packets', tag, access: 'key', summary: 'List packets',
  description: 'Newest first. Every filter narrows; `next_cursor` leads to the next page and is null on the last.',
  query: PacketQuery,
  responses: { 200: { schema: PacketList, description: 'A page of packets.', example: pageExample }, ...failing(400, 401, 429) },
});

export const listAwaiting = defineRoute({
  id: 'listAwaiting', method: 'GET', path: '/packets/awaiting', tag, access: 'key', summary: 'List packets that await a person',
  query: AwaitingQuery,
  responses: { 200: { schema: PacketList, description: 'A page of packets in `awaiting_human`.', example: pageExample }, ...failing(400, 401, 429) },
});

export const searchPackets = defineRoute({
  id: 'searchPackets', method: 'GET', path: '/packets/search', tag, access: 'key', summary: 'Search packets',
  description: 'Full text over summary, conversation, artifacts, decisions and actions; best match first. What was just created is found at once.',
  query: SearchQuery,
  responses: {
    200: { schema: SearchList, description: 'The best matches.', example: { ...pageExample, packets: [{ ...summaryExample, snippet: 'Refund approved for order 4711' }] } },
    ...failing(400, 401, 429),
  },
});

export const getPacket = defineRoute({
  id: 'getPacket', method: 'GET', path: '/packets/{id}', tag, access: 'key', summary: 'Get a packet',
  params: IdParams,
  responses: { 200: packet('The packet; `ETag` carries its revision.'), ...failing(401, 404, 429) },
});

export const patchPacket = defineRoute({
  id: 'patchPacket', method: 'PATCH', path: '/packets/{id}', tag, access: 'key', summary: 'Update a packet',
  description: 'Moves the packet to another status, and merges content into it: lists by `id`, objects at their top level. What is not named stays.',
  params: IdParams, body: PatchRequest, bodyExample: { status: 'in_progress', decisions: [{ id: 'd2', decision: 'Refund in full', rationale: 'Within 14 days' }] },
  headers: { ...IfMatch, ...AgentId },
  responses: { 200: packet('The packet as it is now.'), ...failing(400, 401, 404, 409, 412, 413, 415, 429) },
});

const DeleteQuery = Type.Object(
  { hard: Type.Optional(Type.Boolean({ description: 'Remove the packet and its content for good; needs an admin key.' })) },
  { additionalProperties: false },
);
export const deletePacket = defineRoute({
  id: 'deletePacket', method: 'DELETE', path: '/packets/{id}', tag, access: 'key', summary: 'Delete a packet',
  description: 'Softly: the packet becomes `expired` and stays readable.',
  params: IdParams, query: DeleteQuery, headers: { ...IfMatch, ...AgentId },
  responses: { 204: { description: 'Done.' }, ...failing(400, 401, 403, 404, 409, 412, 429) },
});

export const claimPacket = defineRoute({
  id: 'claimPacket', method: 'POST', path: '/packets/{id}/claim', tag, access: 'key', summary: 'Claim a packet',
  description: 'Takes a `created` packet for an agent. Of any number of agents that try, one gets it.',
  params: IdParams, body: ClaimRequest, bodyExample: { agent_id: 'resolver', agent_name: 'Resolver', framework: 'langgraph' }, nullIsAbsent: true,
  headers: IfMatch,
  responses: {
    200: packet('The packet, claimed.'),
    ...failing(400, 401, 404, 410, 412, 413, 415, 429),
    409: { schema: ClaimConflict, description: 'The packet is not free; `claimed_by` is who holds it.' },
  },
});

export const respondPacket = defineRoute({
  id: 'respondPacket', method: 'POST', path: '/packets/{id}/respond', tag, access: 'key', summary: "Answer a packet's question",
  params: IdParams, body: RespondRequest, bodyExample: { response: 'Approve', responded_by: 'dana@example.com', notes: 'Loyal customer' }, nullIsAbsent: true,
  headers: IfMatch,
  responses: { 200: packet('The packet, answered and `claimed`.'), ...failing(400, 401, 404, 409, 410, 412, 413, 415, 429) },
});

export const chainPacket = defineRoute({
  id: 'chainPacket', method: 'POST', path: '/packets/{id}/chain', tag, access: 'key', summary: 'Continue a packet with a new one',
  params: IdParams, body: ChainRequest, bodyExample: createExample, nullIsAbsent: true, capped: true, headers: { ...IdempotencyKey, ...AgentId },
  responses: { 201: packet('The new packet; `parent_packet_id` is the id in the path.'), ...failing(400, 401, 404, 409, 413, 415, 429) },
});

export const packetHistory = defineRoute({
  id: 'packetHistory', method: 'GET', path: '/packets/{id}/history', tag, access: 'key', summary: "Read a packet's history",
  params: IdParams,
  responses: {
    200: {
      schema: Type.Object({ packet_id: Id, events: Type.Array(HistoryEvent) }),
      description: 'Everything that happened to the packet, oldest first.',
      example: { packet_id: packetExample.id, events: [{ timestamp: packetExample.created_at, event_type: 'created', actor: 'agent:frontline', details: {} }] },
    },
    ...failing(401, 404, 429),
  },
});

export const batchCreate = defineRoute({
  id: 'batchCreate', method: 'POST', path: '/packets/batch', tag, access: 'key', summary: 'Create many packets',
  description: 'Each packet stands alone: those that are refused are listed in `errors` by their index.',
  body: BatchCreateRequest, bodyExample: { packets: [createExample] }, bodySize: 'batch', capped: true, headers: { ...IdempotencyKey, ...AgentId },
  responses: {
    201: { schema: BatchCreated, description: 'The packets created, and what was refused.', example: { created: [packetExample], errors: [] } },
    ...failing(400, 401, 409, 413, 415, 429),
  },
});

export const batchClaim = defineRoute({
  id: 'batchClaim', method: 'POST', path: '/packets/batch/claim', tag, access: 'key', summary: 'Claim many packets',
  body: BatchClaimRequest, bodyExample: { packet_ids: [packetExample.id], agent_id: 'resolver' }, nullIsAbsent: true,
  responses: {
    200: { schema: Type.Object({ claimed: Type.Array(Packet), errors: Type.Array(PacketFault) }), description: 'What was claimed, and what was not.', example: { claimed: [packetExample], errors: [] } },
    ...failing(400, 401, 413, 415, 429),
  },
});

export const batchComplete = defineRoute({
  id: 'batchComplete', method: 'POST', path: '/packets/batch/complete', tag, access: 'key', summary: 'Complete many packets',
  body: BatchCompleteRequest, bodyExample: { packet_ids: [packetExample.id], agent_id: 'resolver' }, nullIsAbsent: true, headers: AgentId,
  responses: {
    200: { schema: Type.Object({ completed: Type.Array(Packet), errors: Type.Array(PacketFault) }), description: 'What was completed, and what was not.', example: { completed: [packetExample], errors: [] } },
    ...failing(400, 401, 413, 415, 429),
  },
});
