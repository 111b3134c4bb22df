import Type, { type Static } from 'typebox';
import { choice, givenTimestamp, Id, name, object, orNull, prose, record, remark, statement, timestamp } from '../../kit/schemas.ts';
import { decisions, Remember } from './action.ts';
import { indexedName, priorities, statuses } from './common.ts';
import { maxWaitSeconds } from './constants.ts';
import { Hitl, question } from './hitl.ts';

/** The version of the packet schema that packets carry. */
export const packetVersion = '1.0.0';

const anyJson = (description: string) => Type.Unknown({ description });

const SourceAgent = Type.Object(
  {
    id: indexedName("The agent's id."),
    name: name("The agent's name."),
    framework: prose('What the agent runs on.', { example: 'langgraph' }),
  },
  { description: 'The agent that hands over.' },
);

const TargetAgent = Type.Object(
  { id: indexedName("The agent's id."), name: name("The agent's name."), framework: Type.Optional(prose('What the agent runs on.')) },
  { description: 'The agent that should continue the work.' },
);

const Turn = Type.Object({
  role: prose('Who spoke: user, assistant, tool ...'),
  content: prose('What was said.'),
  timestamp: Type.Optional(givenTimestamp('When.')),
});

const Artifact = Type.Object({
  key: prose('What the artifact is called.'),
  value: anyJson('Any JSON.'),
  content_type: Type.Optional(prose('A media type.')),
});

export const Decision = Type.Object({
  id: name('The id of the decision within the packet.'),
  decision: statement('What was decided.'),
  rationale: prose('Why.'),
  alternatives: Type.Optional(Type.Array(anyJson('What else was considered.'))),
  decided_by: Type.Optional(prose('Who decided.')),
});

const priority = choice(priorities, { description: 'How urgent it is.' });

export const PendingAction = Type.Object({
  id: name('The id of the action within the packet.'),
  description: statement('What needs to be done.'),
  assignee: prose('Who should do it.'),
  priority: Type.Optional(priority),
  depends_on: Type.Optional(Type.Array(Type.String(), { description: 'Ids of the actions to complete first.' })),
});

export const CompletedAction = Type.Object({
  id: name('The id of the action within the packet.'),
  description: statement('What was done.'),
  result: prose('The result.'),
  completed_by: Type.Optional(prose('Who did it.')),
});

export const FailedAction = Type.Object({
  id: name('The id of the action within the packet.'),
  description: statement('What was tried.'),
  error: prose('What went wrong.'),
});

export const Dependency = Type.Object({
  id: name('The id of the dependency within the packet.'),
  type: prose('The kind of dependency.'),
  description: statement('What the packet depends on.'),
  status: Type.Optional(prose('The status of the dependency.')),
  source: Type.Optional(prose('Where it comes from.')),
});

const Claimant = Type.Object({
  agent_id: Type.String(),
  agent_name: Type.String(),
  framework: orNull(Type.String()),
});

const tags = Type.Array(indexedName('A tag.'), { maxItems: 100, description: 'Freeform tags, used for filtering.' });
/** The most subjects of a packet, and the longest id of one. */
const maxSubjects = 10;
export const maxSubjectLength = 128;
const subjects = Type.Array(name('The opaque id of a person.', { maxLength: maxSubjectLength }), {
  maxItems: maxSubjects,
  description: 'Opaque ids of the people whose data the packet holds, by which it can be found and erased.',
  example: ['customer:4711'],
});
const custom = record(Type.Unknown(), { description: 'Framework-specific or user-defined fields.' });

const contextFields = {
  conversation_state: Type.Array(Turn, { description: 'The conversation so far.' }),
  artifacts: Type.Array(Artifact, { description: 'Named values to hand on.' }),
  custom,
};

type Fields = Record<string, Type.TSchema>;
/** The same fields, all of them optional. */
const optional = <F extends Fields>(fields: F): { [Name in keyof F]: Type.TOptional<F[Name]> } =>
  Object.fromEntries(Object.entries(fields).map(([key, schema]) => [key, Type.Optional(schema)])) as never;

/** A draft of a question: with an action it needs no text. */
const DraftRequest = Type.Object({ ...question, question: Type.Optional(question.question) }, { description: 'A checkpoint for a human.' });

const givenNotBefore = givenTimestamp(
  'The packet can be claimed from this moment on, at most a year from now. A time that has passed has no effect.',
);
const givenDueAt = givenTimestamp('The packet should have ended by this moment. If it is still open then, it is overdue.');

const createFields = {
  metadata: Type.Object({
    source_agent: SourceAgent,
    target_agent: TargetAgent,
    priority: Type.Optional(choice(priorities, { description: 'How urgent it is. Default: normal.' })),
    tags: Type.Optional(tags),
    subjects: Type.Optional(subjects),
  }),
  context: Type.Object({ summary: statement('The work so far, in natural language.'), ...optional(contextFields) }),
  decisions: Type.Optional(Type.Array(Decision)),
  actions: Type.Optional(
    Type.Object({
      pending: Type.Optional(Type.Array(PendingAction)),
      completed: Type.Optional(Type.Array(CompletedAction)),
      failed: Type.Optional(Type.Array(FailedAction)),
    }),
  ),
  dependencies: Type.Optional(Type.Array(Dependency)),
  hitl: Type.Optional(DraftRequest),
  not_before: Type.Optional(givenNotBefore),
  due_at: Type.Optional(givenDueAt),
};

export const ChainRequest = object(createFields);
export const CreateRequest = object({ parent_packet_id: Type.Optional(Id), ...createFields });

const known = <F extends Fields & { id: Type.TString }>({ id, ...rest }: F) => Type.Object({ id: id as Type.TString, ...optional(rest) });

/** A field that a caller can't set. */
const fixed = Type.Optional(Type.Unsafe<never>({ not: {} }));

/** The body of a PATCH. Items of lists only need their `id`, because they are merged into the existing items. */
export const PatchRequest = object({
  status: Type.Optional(choice(statuses, { description: 'The status to move to.' })),
  metadata: Type.Optional(
    Type.Object({
      ...optional({ target_agent: TargetAgent, priority, tags, subjects }),
      source_agent: fixed,
      created_at: fixed,
    }),
  ),
  context: Type.Optional(Type.Object(optional({ summary: statement('The work so far.'), ...contextFields }))),
  decisions: Type.Optional(Type.Array(known(Decision.properties))),
  actions: Type.Optional(
    Type.Object(
      optional({
        pending: Type.Array(known(PendingAction.properties)),
        completed: Type.Array(known(CompletedAction.properties)),
        failed: Type.Array(known(FailedAction.properties)),
      }),
    ),
  ),
  dependencies: Type.Optional(Type.Array(known(Dependency.properties))),
  hitl: Type.Optional(Type.Union([Type.Object(optional(question)), Type.Null()])),
  not_before: Type.Optional(orNull(givenNotBefore, 'Only while the packet is `created`. Null removes it.')),
  due_at: Type.Optional(orNull(givenDueAt, 'Only while the packet is open. Null removes it.')),
});

/** The longest lease: a day. */
export const maxLeaseSeconds = 86_400;
const leaseSeconds = (description: string) => Type.Optional(Type.Integer({ minimum: 1, maximum: maxLeaseSeconds, description }));

export const ClaimRequest = object({
  agent_id: name('The id of the agent that claims the packet.'),
  agent_name: Type.Optional(name('The name of the agent; its id if left out.')),
  framework: Type.Optional(remark('What the agent runs on.')),
  lease_seconds: leaseSeconds('How long the claim lasts unless it is renewed. Without it the claim does not expire.'),
});

/** The most tags in a request for the next packet. */
const maxNextTags = 20;

/** A request to claim the next packet. */
export const ClaimNextRequest = object({
  ...ClaimRequest.properties,
  target_agent: Type.Optional(name('The target agent of the packets; `agent_id` if left out, `*` for any.')),
  tags: Type.Optional(
    Type.Array(indexedName('A tag.'), { maxItems: maxNextTags, description: 'Only packets that have all of these tags.' }),
  ),
  priorities: Type.Optional(
    Type.Array(choice(priorities), {
      minItems: 1,
      maxItems: priorities.length,
      description: 'Only packets of these priorities; all if left out.',
    }),
  ),
  order: Type.Optional(
    choice(['priority', 'due'], {
      description: 'Within a priority, `priority`, the default, takes the oldest packet first, `due` the one with the nearest `due_at`.',
    }),
  ),
  wait_seconds: Type.Optional(
    Type.Integer({ minimum: 0, maximum: maxWaitSeconds, default: 0, description: 'How long to wait if no packet is available.' }),
  ),
});

export const RenewRequest = object({
  lease_seconds: leaseSeconds('The duration of the lease from now; the previous duration if left out.'),
});

export const RespondRequest = object({
  decision: Type.Optional(
    choice(decisions, { description: 'What the person decides about an action; `response` alone is read as the decision.' }),
  ),
  arguments: Type.Optional(
    record(Type.Unknown(), { description: 'The whole arguments as the person changed them, with the decision `edit`.' }),
  ),
  message: Type.Optional(remark('What the person says to the agent: required with `respond`, optional with `reject`.')),
  remember: Type.Optional(Remember),
  response: Type.Optional(
    Type.String({
      maxLength: 16_384,
      description: "The person's answer; the history keeps it. Required unless the question has a schema.",
    }),
  ),
  data: Type.Optional(record(Type.Unknown(), { description: "The fields of the question's schema. Required if it has one." })),
  digest: Type.Optional(
    Type.String({
      pattern: '^[0-9a-f]{64}$',
      description: 'The `hitl.digest` of what the person was shown; 409 `STALE` if the question or what it is about has changed since.',
    }),
  ),
  responded_by: Type.Optional(name('The person who answers; whom the key is for, or who signed in, if left out.')),
  notes: Type.Optional(prose('Additional remarks.')),
  partial: Type.Optional(
    Type.Boolean({ description: 'Whether the page left out text of the packet and the person answered without opening it.' }),
  ),
});

export const BatchCreateRequest = object({
  packets: Type.Array(Type.Unknown({ description: 'A packet create request.' }), { minItems: 1 }),
});
/** The same with its items described. The service validates the items one by one, so that an invalid item does not fail the batch. */
export const BatchCreateShape = object({ packets: Type.Array(CreateRequest, { minItems: 1 }) });

const packetIds = Type.Array(Type.String(), { minItems: 1, description: 'Ids of packets.' });
export const BatchClaimRequest = object({ packet_ids: packetIds, ...ClaimRequest.properties });
export const BatchCompleteRequest = object({
  packet_ids: packetIds,
  agent_id: Type.Optional(name('The agent to record as the actor.')),
  lease_tokens: Type.Optional(record(Type.String(), { description: 'The lease tokens of leased packets, by packet id.' })),
});

/** The trace of the request that created a packet, as the headers of W3C Trace Context have it. */
const Trace = Type.Object(
  {
    traceparent: Type.String({
      description: 'The parent for the work on the packet.',
      example: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    }),
    tracestate: Type.Optional(Type.String({ description: 'What tracing systems add.' })),
  },
  { description: 'The trace of the request that created the packet; absent if that had none. Set by the service.' },
);

const Scheduled = Type.Object(
  { name: Type.String({ description: 'The name of the schedule.' }), at: timestamp('The time for which it made the packet.') },
  { description: 'The schedule that made the packet; absent otherwise. Set by the service.' },
);

const Metadata = Type.Object({
  trace: Type.Optional(Trace),
  schedule: Type.Optional(Scheduled),
  source_agent: SourceAgent,
  target_agent: TargetAgent,
  priority,
  tags,
  subjects: Type.Optional(subjects),
  created_at: timestamp('When the packet was created.'),
});

const Links = Type.Object({ self: Type.String(), claim: Type.String(), history: Type.String() });

/** The lease of a claim, which expires unless it is renewed. */
export const Lease = Type.Object({
  token: Type.Optional(
    Type.String({ description: 'The holder must send it to change the packet. It is only in the answer to the claim.' }),
  ),
  generation: Type.Integer({ minimum: 1, description: 'The number of the lease, counted from the first lease of the packet.' }),
  expires_at: orNull(timestamp('When it expires; null while the packet awaits a person.')),
});

const state = {
  id: Id,
  version: Type.String({ description: 'The version of the packet schema.' }),
  parent_packet_id: orNull(Id),
  status: choice(statuses, { description: 'The status of the packet.' }),
  revision: Type.Integer({ description: 'The number of the revision; each change increments it.' }),
  lease: Type.Union([Lease, Type.Null()], {
    description: 'The lease of the claim; null when the packet is not claimed or the claim does not expire.',
  }),
};
const times = {
  not_before: Type.Optional(timestamp('From when on it can be claimed; absent if no time was set.')),
  due_at: Type.Optional(timestamp('By when it should have ended; absent if no time was set.')),
  overdue: Type.Optional(Type.Boolean({ description: 'True if it was open at its `due_at`; otherwise absent.' })),
};
const erasure = {
  erased: Type.Optional(Type.Boolean({ description: 'True if its content has been erased; otherwise absent.' })),
  erased_at: Type.Optional(timestamp('When its content was erased; absent if it was not.')),
};
const trail = {
  claimed_by: orNull(Claimant),
  claimed_at: orNull(timestamp('When it was claimed.')),
  created_at: timestamp('When it was created.'),
  updated_at: timestamp('When it last changed.'),
  _links: Links,
};

/** The fields that the packet's life changes. The content follows them, in the API and as stored. */
const life = { ...state, metadata: Metadata, hitl: Type.Union([Hitl, Type.Null()]), ...times, ...erasure, ...trail };

export const Packet = Type.Object({
  ...life,
  context: Type.Object({
    summary: Type.String(),
    conversation_state: Type.Array(Turn),
    artifacts: Type.Array(Artifact),
    custom,
  }),
  decisions: Type.Array(Decision),
  actions: Type.Object({ pending: Type.Array(PendingAction), completed: Type.Array(CompletedAction), failed: Type.Array(FailedAction) }),
  dependencies: Type.Array(Dependency),
});

const counted = ['decisions', 'pending', 'completed', 'failed', 'dependencies', 'turns', 'artifacts'] as const;

/** A packet in a list: without the long parts of its content, which are only counted. */
export const PacketSummary = Type.Object({
  ...life,
  context: Type.Object({ summary: Type.String() }),
  counts: Type.Object(Object.fromEntries(counted.map((part) => [part, Type.Integer()])) as Record<(typeof counted)[number], Type.TInteger>),
});

export const HistoryEvent = Type.Object({
  timestamp: timestamp('When it happened.'),
  event_type: Type.String({ description: 'What happened.', example: 'claimed' }),
  actor: Type.String({ description: 'Who did it.', example: 'agent:researcher' }),
  key_id: orNull(Id, 'The API key that was used; null when the service itself acted.'),
  details: record(Type.Unknown()),
});

export type Packet = Static<typeof Packet>;
export type PacketSummary = Static<typeof PacketSummary>;
export type Lease = Static<typeof Lease>;
export type ClaimNextRequest = Static<typeof ClaimNextRequest>;
export type CreateRequest = Static<typeof CreateRequest>;
export type ChainRequest = Static<typeof ChainRequest>;
export type PatchRequest = Static<typeof PatchRequest>;
export type ClaimRequest = Static<typeof ClaimRequest>;
/** An answer of a person who is named. */
export type RespondRequest = Static<typeof RespondRequest> & { responded_by: string };
export type Claimant = Static<typeof Claimant>;
export type HistoryEvent = Static<typeof HistoryEvent>;

/** The schemas of packets that the API description names. */
export const packetSchemas = {
  Packet,
  PacketSummary,
  SourceAgent,
  TargetAgent,
  Turn,
  Artifact,
  Decision,
  PendingAction,
  CompletedAction,
  FailedAction,
  Dependency,
  Hitl,
  CreateRequest,
  ChainRequest,
  PatchRequest,
  ClaimRequest,
  RespondRequest,
  HistoryEvent,
};
