import Type, { type Static } from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { choice, commaList, givenTimestamp, Id, IdParams, IfMatch, object, orNull, paging, timestamp } from '../../kit/schemas.ts';
import {
  AgentId,
  ETag,
  failing,
  IdempotencyKey,
  LeaseToken,
  priorities,
  Replayed,
  type Status,
  TraceOfPacket,
  trialCodes,
} from './common.ts';
import { maxWaitSeconds } from './constants.ts';
import { violated } from './contract.ts';
import { Failure } from './errors.ts';
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
import { Hitl } from './hitl.ts';
import {
  ChainRequest,
  ClaimRequest,
  CreateRequest,
  HistoryEvent,
  Packet,
  PacketSummary,
  PatchRequest,
  packetSchemas,
  RespondRequest,
} from './packet.ts';
import { defineRoute } from './route.ts';

/** A response with a packet, and its `ETag`. */
export const packet = (description: string, example: unknown, headers: Record<string, string> = {}) => ({
  schema: Packet,
  description,
  example,
  headers: { ...ETag, ...headers },
});

const listFilters = {
  status: Type.Optional(
    commaList<Status>({ description: 'Comma-separated statuses; a packet must have one of them.', example: 'created,claimed' }),
  ),
  source_agent: Type.Optional(Type.String({ description: "The source agent's id." })),
  target_agent: Type.Optional(Type.String({ description: "The target agent's id." })),
  tags: Type.Optional(
    commaList({
      description: 'Comma-separated tags; a packet must have all of them. A tag with a comma stands in quotation marks, as in CSV.',
      example: 'billing,urgent',
    }),
  ),
  priority: Type.Optional(choice(priorities, { description: 'The priority.' })),
  subject: Type.Optional(Type.String({ description: 'The id of a person whose data the packet holds.', example: 'customer:4711' })),
  hitl_required: Type.Optional(Type.Boolean({ description: 'Whether the packet has a checkpoint that a person must answer.' })),
  created_after: Type.Optional(givenTimestamp('Created at or after this moment.')),
  created_before: Type.Optional(givenTimestamp('Created at or before this moment.')),
};
const holderFilters = {
  claimed_by: Type.Optional(Type.String({ description: 'The id of the agent that holds the packet, or held it last.' })),
  parent_packet_id: Type.Optional(Id),
  updated_after: Type.Optional(givenTimestamp('Last changed at or after this moment.')),
  updated_before: Type.Optional(givenTimestamp('Last changed at or before this moment.')),
  scheduled: Type.Optional(Type.Boolean({ description: 'Whether the packet is `created` and its `not_before` is still to come.' })),
  overdue: Type.Optional(Type.Boolean({ description: 'Whether the packet is open and was so at its `due_at`.' })),
  due_before: Type.Optional(givenTimestamp('With a `due_at` at or before this moment.')),
  order: Type.Optional(
    choice(['desc', 'asc', 'due'], {
      default: 'desc',
      description: '`asc`: oldest first. `due`: the nearest `due_at` first, packets without one at the end, oldest first.',
    }),
  ),
};

const cursor = Type.Optional(
  Type.String({ maxLength: 1024, description: 'The `next_cursor` of the previous page; must not be combined with `offset`.' }),
);
const view = Type.Optional(choice(['summary', 'full'], { default: 'summary', description: '`full`: whole packets instead of summaries.' }));

export const PacketQuery = object({ ...listFilters, ...holderFilters, ...paging(), cursor, view });
const AwaitingQuery = object({ ...paging(), cursor, view });
export type PacketQuery = Static<typeof PacketQuery>;

export const SearchQuery = object({
  q: Type.String({
    description:
      'Words and "quoted phrases", all of which must occur. `*` directly after a word of two or more characters makes it a prefix. Only the first sixteen words count.',
    example: 'refund "gold member"',
  }),
  status: listFilters.status,
  target_agent: listFilters.target_agent,
  tags: listFilters.tags,
  priority: listFilters.priority,
  subject: listFilters.subject,
  created_after: listFilters.created_after,
  created_before: listFilters.created_before,
  ...paging(),
  cursor,
});
export type SearchQuery = Static<typeof SearchQuery>;

/** What a read of a packet may wait for. */
export const WaitQuery = object({
  wait_seconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: maxWaitSeconds,
      description: 'How long to wait until the packet is as `until` or `until_revision` says.',
    }),
  ),
  until: Type.Optional(
    commaList<Status>({
      description: 'Comma-separated statuses; the wait ends when the packet has one of them.',
      example: 'claimed,completed',
    }),
  ),
  until_revision: Type.Optional(
    Type.Integer({ minimum: 1, description: 'The wait ends when the packet has this revision or a later one.' }),
  ),
});
export type WaitQuery = Static<typeof WaitQuery>;

const page = { total: Type.Integer(), limit: Type.Integer(), offset: Type.Integer(), next_cursor: orNull(Type.String()) };
const PacketList = Type.Object({ packets: Type.Array(Type.Union([PacketSummary, Packet])), ...page });
const AwaitingList = Type.Object({
  ...PacketList.properties,
  unnotified: Type.Optional(
    Type.Boolean({ description: 'True if the tenant has no active channel that sends new questions; otherwise absent.' }),
  ),
});
const pageExample = { packets: [summaryExample], total: 1, limit: 50, offset: 0, next_cursor: null };

/** A packet in a search result. */
const PacketHit = Type.Interface([PacketSummary], {
  snippet: Type.String({ description: 'An excerpt around the words that match.' }),
});
const SearchList = Type.Object({
  packets: Type.Array(PacketHit),
  order: choice(['rank', 'newest'], {
    description: '`rank`: the best match first; `newest`: too many packets match to rank them, so the newest comes first.',
  }),
  ...page,
  total_is: choice(['exact', 'at_least'], { description: 'Whether `total` is the number of matches or a lower bound.' }),
});

const tooLargePage = {
  schema: Failure,
  description:
    'The page would be larger than 16 MiB; `detail` names a `limit` that fits. A page without an `offset` ends early instead, with `next_cursor`.',
};
/** The holder of a packet, as a 409 names it. */
export const Holder = Type.Object({
  agent_id: Type.String(),
  agent_name: Type.String(),
  framework: orNull(Type.String()),
  claimed_at: orNull(timestamp('When it was claimed.')),
});
const ClaimConflict = Type.Interface([Failure], {
  claimed_by: Type.Optional(orNull(Holder)),
  not_before: Type.Optional(timestamp('With `NOT_YET`: from when on it can be claimed.')),
});

const StaleConflict = Type.Interface([Failure], { hitl: Type.Optional(Hitl) });

const DeleteQuery = object({
  hard: Type.Optional(Type.Boolean({ description: 'Remove the packet and its content permanently; needs an admin key.' })),
});

/** The parameters of a request that can only try. */
export const DryRunQuery = object({
  dry_run: Type.Optional(
    Type.Boolean({
      description:
        'Only check the request: nothing is stored, counted against the quota or sent, and the answer is 200 with `ok` and `errors`.',
    }),
  ),
});

/** The result of a dry run of a creation. */
export const Trial = Type.Object({
  ok: Type.Boolean({ description: 'Whether the packet would be created.' }),
  errors: Type.Array(
    Type.Object({
      code: choice(trialCodes, { description: 'Why it would be refused, for a program.' }),
      field: orNull(Type.String(), 'The dotted path of the invalid field; null if the fault is not about a field.'),
      message: Type.String({ description: 'What is wrong, in a sentence.' }),
      detail: Type.String({ description: 'The same as `message`.' }),
    }),
    { description: 'Why it would be refused, at most 100 faults.' },
  ),
});
export type Trial = Static<typeof Trial>;

/** The routes of packets. */
export const packetRoutes = routeTable('packets', {
  createPacket: defineRoute({
    method: 'POST',
    path: '/packets',
    access: 'work',
    summary: 'Create a packet',
    description:
      "Hands a unit of work to another agent. The packet starts as `created`, with the `version` of the packet schema. It counts towards the tenant's daily quota (UTC). After a 503, or when no answer arrives, repeat the request with the same `Idempotency-Key`.",
    body: CreateRequest,
    bodyExample: createExample,
    nullIsAbsent: true,
    reportsDailyQuota: true,
    headers: { ...IdempotencyKey, ...AgentId },
    query: DryRunQuery,
    responses: {
      // The client has a type of its own for it, so that creating a packet always returns one.
      200: {
        schema: Trial as Type.TSchema as Type.TUnsafe<never>,
        description: 'With `dry_run=true`: whether the packet would be created.',
        example: { ok: true, errors: [] },
      },
      201: packet('The packet.', packetExample, Replayed),
      ...failing(401, 403, 409, 413, 415, 429),
      400: violated,
    },
  }),
  listPackets: defineRoute({
    method: 'GET',
    path: '/packets',
    access: 'read',
    summary: 'List packets',
    description:
      'Newest first, oldest first with `order=asc`, or by `due_at` with `order=due`. Filters are combined with AND; `total` is exact. Pass `next_cursor` as `cursor` for the next page; it is null on the last page, is only valid with the same filters and order, and must not be combined with `offset`. Packets created between requests shift pages by `offset`, but not pages by cursor.',
    query: PacketQuery,
    responses: {
      200: { schema: PacketList, description: 'A page of packets.', example: pageExample },
      ...failing(401, 403, 429),
      413: tooLargePage,
    },
  }),
  listAwaiting: defineRoute({
    method: 'GET',
    path: '/packets/awaiting',
    access: 'read',
    summary: 'List packets that await a person',
    description: 'Every packet in `awaiting_human`, newest first. `unnotified` says that no channel notifies anybody of them.',
    query: AwaitingQuery,
    responses: {
      200: {
        schema: AwaitingList,
        description: 'A page of packets in `awaiting_human`.',
        example: { ...pageExample, unnotified: true },
      },
      ...failing(401, 403, 429),
      413: tooLargePage,
    },
  }),
  searchPackets: defineRoute({
    method: 'GET',
    path: '/packets/search',
    access: 'read',
    summary: 'Search packets',
    description:
      'Full-text search over summary, conversation, artifacts, decisions, actions and the question and reason of a checkpoint. A new packet is found as soon as it is created. Up to 5,000 matches are ranked; if there are more, the newest come first. In that case a search with a filter or a phrase of common words may return a short or empty page before the end: continue with `next_cursor`.',
    query: SearchQuery,
    responses: {
      200: {
        schema: SearchList,
        description: 'The best or the newest matches.',
        example: {
          ...pageExample,
          packets: [{ ...summaryExample, snippet: 'Refund approved for order 4711' }],
          order: 'rank',
          total_is: 'exact',
        },
      },
      ...failing(401, 403, 429),
      413: tooLargePage,
    },
  }),
  getPacket: defineRoute({
    method: 'GET',
    path: '/packets/{id}',
    access: 'read',
    summary: 'Get a packet',
    description:
      'The whole packet. With `If-None-Match`, an unchanged packet is answered with 304 and no body. With `wait_seconds` the answer comes as soon as the packet is as `until` or `until_revision` says. If that time passes or the service stops first, the answer has the packet as it is then. A waiting request counts towards the connection quota.',
    params: IdParams,
    query: WaitQuery,
    headers: { 'If-None-Match': 'The `ETag` that the caller last saw; 304 when the packet has not changed since. Optional.' },
    responses: {
      200: packet('The packet.', packetExample),
      304: { description: 'The packet has not changed since.', headers: ETag },
      ...failing(400, 401, 403, 404, 429),
    },
  }),
  patchPacket: defineRoute({
    method: 'PATCH',
    path: '/packets/{id}',
    access: 'work',
    summary: 'Update a packet',
    description:
      'Moves the packet to another status and merges content into it. Fields that are left out stay unchanged: `decisions`, `dependencies` and the lists of `actions` are merged by `id`, `context` and `metadata` at their top level; an action listed in `completed` or `failed` is removed from `pending`. A transition that is not allowed gets 400, and `detail` lists the allowed ones. `awaiting_human` needs `hitl.question`; a packet with `hitl.required` can only be completed once the question is answered.',
    params: IdParams,
    body: PatchRequest,
    bodyExample: { status: 'in_progress', decisions: [{ id: 'd2', decision: 'Refund in full', rationale: 'Within 14 days' }] },
    headers: { ...IfMatch, ...IdempotencyKey, ...AgentId, ...LeaseToken },
    responses: { 200: packet('The updated packet.', startedExample, Replayed), ...failing(401, 403, 404, 409, 412, 413, 415, 429) },
  }),
  deletePacket: defineRoute({
    method: 'DELETE',
    path: '/packets/{id}',
    access: 'work',
    summary: 'Delete a packet',
    description:
      'The packet becomes `expired` and stays readable; deleting an expired packet gets 409. With `hard=true` an admin key removes the packet and its content permanently. A leased packet needs its lease token, unless the key is an admin key.',
    params: IdParams,
    query: DeleteQuery,
    headers: { ...IfMatch, ...AgentId, ...LeaseToken },
    responses: { 204: { description: 'Done.' }, ...failing(401, 403, 404, 409, 412, 429) },
  }),
  claimPacket: defineRoute({
    method: 'POST',
    path: '/packets/{id}/claim',
    access: 'work',
    summary: 'Claim a packet',
    description:
      "Assigns a `created` packet to an agent. When several agents try, exactly one succeeds; the others get 409 with the holder in `claimed_by`. The target agent is a recommendation: any agent of the tenant may claim. With `lease_seconds` the claim expires unless it is renewed, and the answer contains the lease's `token`.",
    params: IdParams,
    body: ClaimRequest,
    bodyExample: { agent_id: 'resolver', agent_name: 'Resolver', framework: 'langgraph' },
    nullIsAbsent: true,
    headers: { ...IfMatch, ...IdempotencyKey },
    responses: {
      200: packet('The claimed packet.', claimedExample, { ...Replayed, ...TraceOfPacket }),
      ...failing(401, 403, 404, 410, 412, 413, 415, 429),
      409: {
        schema: ClaimConflict,
        description:
          'The packet is not free; `claimed_by` names the holder. `NOT_YET`: its `not_before` is still to come, in `Retry-After` seconds.',
        example: conflictExample,
      },
    },
  }),
  respondPacket: defineRoute({
    method: 'POST',
    path: '/packets/{id}/respond',
    access: 'respond',
    summary: "Answer a packet's question",
    description:
      'Records the answer of a person to a packet in `awaiting_human`. The packet returns to `claimed`, held by its previous holder, or by its target agent if it had none. 409 when the packet awaits no answer, or `STALE` when it has changed since the person saw it, as `digest` tells; 410 after `timeout_seconds`.',
    params: IdParams,
    body: RespondRequest,
    bodyExample: { response: 'Approve', responded_by: 'dana@example.com', notes: 'Loyal customer' },
    nullIsAbsent: true,
    headers: {
      ...IfMatch,
      ...IdempotencyKey,
    },
    responses: {
      200: packet('The packet, answered and `claimed`.', answeredExample, Replayed),
      409: {
        schema: StaleConflict,
        description: 'The packet awaits no answer, or the question has changed; `hitl` then has the current one.',
      },
      ...failing(401, 403, 404, 410, 412, 413, 415, 429),
    },
  }),
  chainPacket: defineRoute({
    method: 'POST',
    path: '/packets/{id}/chain',
    access: 'work',
    summary: 'Continue a packet with a new one',
    description: 'Creates a packet whose parent is the packet in the path, in any status. The child contains only what is sent.',
    params: IdParams,
    body: ChainRequest,
    bodyExample: createExample,
    nullIsAbsent: true,
    reportsDailyQuota: true,
    headers: { ...IdempotencyKey, ...AgentId },
    responses: {
      201: packet('The new packet; `parent_packet_id` is the id in the path.', chainedExample, Replayed),
      ...failing(401, 403, 404, 409, 413, 415, 429),
      400: violated,
    },
  }),
  packetHistory: defineRoute({
    method: 'GET',
    path: '/packets/{id}/history',
    access: 'read',
    summary: "Read a packet's history",
    description: 'Who did what to the packet, and when: the part of the audit log that concerns it.',
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
      ...failing(401, 403, 404, 429),
    },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const packetApi = {
  tag: { name: 'packets', description: 'Units of work that agents hand over.' },
  routes: packetRoutes,
  schemas: { ...packetSchemas, PacketList, PacketHit, SearchList, Trial },
};
