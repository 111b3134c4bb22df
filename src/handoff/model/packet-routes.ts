import Type, { type Static } from 'typebox';

import { choice, Failure, givenTimestamp, Id, IdParams, IfMatch, orNull, paging, timestamp } from '../../kit/schemas.ts';
import { AgentId, failing, IdempotencyKey, LeaseToken, priorities, Replayed } from './common.ts';
import {
  answeredExample,
  chainedExample,
  claimedExample,
  conflictExample,
  createExample,
  packetExample,
  startedExample,
  summaryExample,
} from './examples.ts';
import { ChainRequest, ClaimRequest, CreateRequest, HistoryEvent, Packet, PacketSummary, PatchRequest, RespondRequest } from './packet.ts';
import { defineRoute } from './route.ts';

const ETag = { ETag: 'The revision of the packet, for `If-Match` and `If-None-Match`.' };
const packet = (description: string, example: unknown, headers: Record<string, string> = {}) => ({
  schema: Packet,
  description,
  example,
  headers: { ...ETag, ...headers },
});

const listFilters = {
  status: Type.Optional(Type.String({ description: 'Statuses, comma-separated; any of them.', example: 'created,claimed' })),
  source_agent: Type.Optional(Type.String({ description: "The source agent's id." })),
  target_agent: Type.Optional(Type.String({ description: "The target agent's id." })),
  tags: Type.Optional(Type.String({ description: 'Tags, comma-separated; all of them.', example: 'billing,urgent' })),
  priority: Type.Optional(choice(priorities, { description: 'The priority.' })),
  hitl_required: Type.Optional(Type.Boolean({ description: 'Whether the packet has a checkpoint that requires a person.' })),
  created_after: Type.Optional(givenTimestamp('Created at or after this moment.')),
  created_before: Type.Optional(givenTimestamp('Created at or before this moment.')),
};
const holderFilters = {
  claimed_by: Type.Optional(Type.String({ description: 'The id of the agent that holds it, or held it last.' })),
  parent_packet_id: Type.Optional(Id),
  updated_after: Type.Optional(givenTimestamp('Last changed at or after this moment.')),
  updated_before: Type.Optional(givenTimestamp('Last changed at or before this moment.')),
  order: Type.Optional(choice(['desc', 'asc'], { default: 'desc', description: '`asc`: oldest first.' })),
};

const cursor = Type.Optional(
  Type.String({ maxLength: 1024, description: 'The `next_cursor` of the page before; not together with `offset`.' }),
);
const view = Type.Optional(choice(['summary', 'full'], { default: 'summary', description: '`full`: whole packets instead of summaries.' }));

export const PacketQuery = Type.Object({ ...listFilters, ...holderFilters, ...paging(), cursor, view }, { additionalProperties: false });
const AwaitingQuery = Type.Object({ ...paging(), cursor, view }, { additionalProperties: false });
export type PacketQuery = Static<typeof PacketQuery>;

export const SearchQuery = Type.Object(
  {
    q: Type.String({
      description:
        'Words, and "phrases in quotes"; all of them must occur. A star directly behind a word of two characters or more finds all words that begin so. Sixteen words count.',
      example: 'refund "gold member"',
    }),
    status: listFilters.status,
    target_agent: listFilters.target_agent,
    tags: listFilters.tags,
    priority: listFilters.priority,
    created_after: listFilters.created_after,
    created_before: listFilters.created_before,
    ...paging(),
    cursor,
  },
  { additionalProperties: false },
);
export type SearchQuery = Static<typeof SearchQuery>;

const page = { total: Type.Integer(), limit: Type.Integer(), offset: Type.Integer(), next_cursor: orNull(Type.String()) };
export const PacketList = Type.Object({ packets: Type.Array(Type.Union([PacketSummary, Packet])), ...page });
const pageExample = { packets: [summaryExample], total: 1, limit: 50, offset: 0, next_cursor: null };

/** A packet that a search found. */
export const PacketHit = Type.Interface([PacketSummary], {
  snippet: Type.String({ description: 'The words found, in their surroundings.' }),
});
export const SearchList = Type.Object({
  packets: Type.Array(PacketHit),
  order: choice(['rank', 'newest'], {
    description: '`rank`: the best match first; `newest`: too many match to be ranked, and the newest comes first.',
  }),
  ...page,
  total_is: choice(['exact', 'at_least'], { description: 'Whether there are `total` matches, or that many and perhaps more.' }),
});

const tooLargePage = {
  schema: Failure,
  description:
    'The page would be larger than 16 MiB; `detail` names a `limit` that fits. A page that is asked for by `cursor` ends early instead.',
};
/** Who holds a packet, as the 409 of a claim says it. */
export const Holder = Type.Object({
  agent_id: Type.String(),
  agent_name: Type.String(),
  framework: orNull(Type.String()),
  claimed_at: orNull(timestamp('When it was claimed.')),
});
const ClaimConflict = Type.Interface([Failure], { claimed_by: Type.Optional(orNull(Holder)) });

const tag = 'packets';

export const createPacket = defineRoute({
  id: 'createPacket',
  method: 'POST',
  path: '/packets',
  tag,
  access: 'key',
  summary: 'Create a packet',
  description:
    "Hands a unit of work to another agent. The packet begins as `created`, at the `version` of the packet schema. It counts towards the tenant's packets of the UTC day. After 503, or without an answer, repeat it with the same `Idempotency-Key`.",
  body: CreateRequest,
  bodyExample: createExample,
  nullIsAbsent: true,
  capped: true,
  headers: { ...IdempotencyKey, ...AgentId },
  responses: { 201: packet('The packet.', packetExample, Replayed), ...failing(401, 409, 413, 415, 429) },
});

export const listPackets = defineRoute({
  id: 'listPackets',
  method: 'GET',
  path: '/packets',
  tag,
  access: 'key',
  summary: 'List packets',
  description:
    'Newest first, or oldest first with `order=asc`. Every filter narrows; `total` is exact. `next_cursor` leads to the next page and is null on the last; it belongs to its filters, and goes together with no `offset`. Packets that are created meanwhile shift pages by `offset` and leave those by cursor alone.',
  query: PacketQuery,
  responses: {
    200: { schema: PacketList, description: 'A page of packets.', example: pageExample },
    ...failing(401, 429),
    413: tooLargePage,
  },
});

export const listAwaiting = defineRoute({
  id: 'listAwaiting',
  method: 'GET',
  path: '/packets/awaiting',
  tag,
  access: 'key',
  summary: 'List packets that await a person',
  description: 'The questions that are open, newest packet first: every packet in `awaiting_human`.',
  query: AwaitingQuery,
  responses: {
    200: { schema: PacketList, description: 'A page of packets in `awaiting_human`.', example: pageExample },
    ...failing(401, 429),
    413: tooLargePage,
  },
});

export const searchPackets = defineRoute({
  id: 'searchPackets',
  method: 'GET',
  path: '/packets/search',
  tag,
  access: 'key',
  summary: 'Search packets',
  description:
    'Full text over summary, conversation, artifacts, decisions, actions and the question and reason of a checkpoint. What was just created is found at once. Up to 50,000 matches are ranked (5,000 on PostgreSQL); of more the newest come first. Then, with a filter or a phrase of common words, a page may end early, or be empty: `next_cursor` goes on.',
  query: SearchQuery,
  responses: {
    200: {
      schema: SearchList,
      description: 'The best matches, or the newest.',
      example: {
        ...pageExample,
        packets: [{ ...summaryExample, snippet: 'Refund approved for order 4711' }],
        order: 'rank',
        total_is: 'exact',
      },
    },
    ...failing(401, 429),
    413: tooLargePage,
  },
});

export const getPacket = defineRoute({
  id: 'getPacket',
  method: 'GET',
  path: '/packets/{id}',
  tag,
  access: 'key',
  summary: 'Get a packet',
  description: 'The whole packet as it stands. With `If-None-Match` an unchanged packet costs no body.',
  params: IdParams,
  headers: { 'If-None-Match': 'The `ETag` the caller last saw; 304 when the packet has not changed since. Optional.' },
  responses: {
    200: packet('The packet.', packetExample),
    304: { description: 'The packet has not changed since.', headers: ETag },
    ...failing(401, 404, 429),
  },
});

export const patchPacket = defineRoute({
  id: 'patchPacket',
  method: 'PATCH',
  path: '/packets/{id}',
  tag,
  access: 'key',
  summary: 'Update a packet',
  description:
    'Moves the packet to another status, and merges content into it. What is not named stays: `decisions`, `dependencies` and the lists of `actions` are merged by `id`, `context` and `metadata` at their top level; an action that appears in `completed` or `failed` leaves `pending`. A transition that is not allowed is 400, and `detail` lists those that are. `awaiting_human` needs `hitl.question`; with `hitl.required` a packet is not completed unanswered.',
  params: IdParams,
  body: PatchRequest,
  bodyExample: { status: 'in_progress', decisions: [{ id: 'd2', decision: 'Refund in full', rationale: 'Within 14 days' }] },
  headers: { ...IfMatch, ...AgentId, ...LeaseToken },
  responses: { 200: packet('The packet as it is now.', startedExample), ...failing(401, 404, 409, 412, 413, 415, 429) },
});

const DeleteQuery = Type.Object(
  { hard: Type.Optional(Type.Boolean({ description: 'Remove the packet and its content for good; needs an admin key.' })) },
  { additionalProperties: false },
);
export const deletePacket = defineRoute({
  id: 'deletePacket',
  method: 'DELETE',
  path: '/packets/{id}',
  tag,
  access: 'key',
  summary: 'Delete a packet',
  description:
    'The packet becomes `expired` and stays readable; an expired one is not deleted again (409). With `hard=true` an admin key removes it and its content for good. A leased packet needs its token, unless the key is an admin key.',
  params: IdParams,
  query: DeleteQuery,
  headers: { ...IfMatch, ...AgentId, ...LeaseToken },
  responses: { 204: { description: 'Done.' }, ...failing(401, 403, 404, 409, 412, 429) },
});

export const claimPacket = defineRoute({
  id: 'claimPacket',
  method: 'POST',
  path: '/packets/{id}/claim',
  tag,
  access: 'key',
  summary: 'Claim a packet',
  description:
    "Takes a `created` packet for an agent. Of any number of agents that try, one gets it; the others get 409 with the holder in `claimed_by`. The target agent is a recommendation: any agent of the tenant may claim. With `lease_seconds` the claim ends by itself unless it is renewed, and the answer has the lease's `token`.",
  params: IdParams,
  body: ClaimRequest,
  bodyExample: { agent_id: 'resolver', agent_name: 'Resolver', framework: 'langgraph' },
  nullIsAbsent: true,
  headers: { ...IfMatch, ...IdempotencyKey },
  responses: {
    200: packet('The packet, claimed.', claimedExample, Replayed),
    ...failing(401, 404, 410, 412, 413, 415, 429),
    409: { schema: ClaimConflict, description: 'The packet is not free; `claimed_by` is who holds it.', example: conflictExample },
  },
});

export const respondPacket = defineRoute({
  id: 'respondPacket',
  method: 'POST',
  path: '/packets/{id}/respond',
  tag,
  access: 'key',
  summary: "Answer a packet's question",
  description:
    'Gives the answer of a person to a packet in `awaiting_human`. The packet is `claimed` again by who held it, or by its target agent when nobody did. 409 when no answer is awaited, 410 after `timeout_seconds`.',
  params: IdParams,
  body: RespondRequest,
  bodyExample: { response: 'Approve', responded_by: 'dana@example.com', notes: 'Loyal customer' },
  nullIsAbsent: true,
  headers: { ...IfMatch, ...IdempotencyKey },
  responses: {
    200: packet('The packet, answered and `claimed`.', answeredExample, Replayed),
    ...failing(401, 404, 409, 410, 412, 413, 415, 429),
  },
});

export const chainPacket = defineRoute({
  id: 'chainPacket',
  method: 'POST',
  path: '/packets/{id}/chain',
  tag,
  access: 'key',
  summary: 'Continue a packet with a new one',
  description: 'Creates a packet whose parent is the one in the path, whatever status that has. The child holds only what is sent.',
  params: IdParams,
  body: ChainRequest,
  bodyExample: createExample,
  nullIsAbsent: true,
  capped: true,
  headers: { ...IdempotencyKey, ...AgentId },
  responses: {
    201: packet('The new packet; `parent_packet_id` is the id in the path.', chainedExample, Replayed),
    ...failing(401, 404, 409, 413, 415, 429),
  },
});

export const packetHistory = defineRoute({
  id: 'packetHistory',
  method: 'GET',
  path: '/packets/{id}/history',
  tag,
  access: 'key',
  summary: "Read a packet's history",
  description: 'Who did what to the packet and when: its own part of the audit log.',
  params: IdParams,
  responses: {
    200: {
      schema: Type.Object({ packet_id: Id, events: Type.Array(HistoryEvent) }),
      description: 'Everything that happened to the packet, oldest first.',
      example: {
        packet_id: packetExample.id,
        events: [
          { timestamp: packetExample.created_at, event_type: 'created', actor: 'agent:frontline', key_id: packetExample.id, details: {} },
        ],
      },
    },
    ...failing(401, 404, 429),
  },
});
