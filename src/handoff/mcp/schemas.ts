import Type, { type TSchema } from 'typebox';
import { choice, name, object, record, statement } from '../../kit/schemas.ts';
import { priorities, statuses } from '../model/common.ts';
import { maxWaitSeconds } from '../model/constants.ts';
import { askedFields } from '../model/hitl.ts';
import { ClaimNextRequest, CreateRequest, maxLeaseSeconds, PatchRequest, RenewRequest } from '../model/packet.ts';

/** The longest that a tool waits, in seconds: clients of MCP give a request up after a minute. */
export const maxToolSeconds = maxWaitSeconds - 5;

/** How long a claim over MCP lasts, in seconds, if the call does not say. */
export const defaultLeaseSeconds = 900;

/** A schema as clients of MCP get it: without our own format of timestamps and with standard examples. */
export function published(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(published);
  if (typeof schema !== 'object' || schema === null) return schema;
  return Object.fromEntries(
    Object.entries(schema).flatMap(([key, value]) => {
      if (key === 'example') return [['examples', [value]]];
      if (key === 'format' && value === 'timestamp') return [];
      return [[key, published(value)]];
    }),
  );
}

/** How long a call waits for an approval unless it says otherwise: an hour. */
export const approvalSeconds = 3600;

const optional = Type.Optional;

const packetId = Type.String({ description: 'The id of the packet.' });
const agent = {
  agent_id: optional(name('Your id as an agent. Leave it out if the connection names it (header X-Agent-Id).')),
};
const leaseToken = optional(
  Type.String({ description: 'The lease token from the claim. The agent that holds the packet may leave it out.' }),
);
const leaseSeconds = optional(
  Type.Integer({
    minimum: 0,
    maximum: maxLeaseSeconds,
    description: `How long the claim lasts unless a call for the packet renews it; ${defaultLeaseSeconds} if left out, 0 for a claim that does not expire.`,
  }),
);
const ifRevision = optional(Type.Integer({ minimum: 1, description: 'Change the packet only if it still has this revision.' }));
const waitSeconds = optional(
  Type.Integer({ minimum: 0, maximum: maxToolSeconds, description: `How long to wait, up to ${maxToolSeconds}, which is the default.` }),
);
const waitForPacket = optional(
  Type.Integer({
    minimum: 0,
    // As over HTTP, so that a value that is right there is right here.
    maximum: maxWaitSeconds,
    description: `How long to wait if no packet is available; the call ends after ${maxToolSeconds} seconds in any case.`,
  }),
);
const idempotencyKey = optional(
  Type.String({ minLength: 1, maxLength: 255, description: 'A repeated call with the same key gets the first answer again.' }),
);
const change = { packet_id: packetId, ...agent, lease_token: leaseToken, if_revision: ifRevision };

const { context, decisions, actions, dependencies, not_before, due_at } = CreateRequest.properties;
const { conversation_state, artifacts, custom } = context.properties;
const content = PatchRequest.properties;
const { tags, priorities: wanted, order, framework, agent_name } = ClaimNextRequest.properties;
const holder = { ...agent, agent_name, framework };

const { required: _, ...asked } = askedFields;

/** The arguments of the tools. Their names are those of the fields of the API. */
export const inputs = {
  hand_over: object({
    target_agent: name('The id of the agent that should continue the work.'),
    target_agent_name: optional(name('Its name; its id if left out.')),
    summary: context.properties.summary,
    ...holder,
    parent_packet_id: CreateRequest.properties.parent_packet_id,
    priority: optional(choice(priorities, { description: 'How urgent it is.' })),
    tags: CreateRequest.properties.metadata.properties.tags,
    subjects: CreateRequest.properties.metadata.properties.subjects,
    ...{ conversation_state, artifacts, custom, decisions, actions, dependencies, not_before, due_at },
    idempotency_key: idempotencyKey,
  }),
  claim_next: object({
    ...holder,
    target_agent: ClaimNextRequest.properties.target_agent,
    ...{ tags, priorities: wanted, order, wait_seconds: waitForPacket, lease_seconds: leaseSeconds },
    idempotency_key: idempotencyKey,
  }),
  claim: object({ packet_id: packetId, ...holder, lease_seconds: leaseSeconds, idempotency_key: idempotencyKey }),
  renew_lease: object({
    packet_id: packetId,
    ...agent,
    lease_token: leaseToken,
    ...RenewRequest.properties,
  }),
  release: object({ packet_id: packetId, ...agent, lease_token: leaseToken }),
  update: object({
    ...change,
    status: optional(Type.Literal('in_progress', { description: 'Shows that the work has begun.' })),
    ...{ context: content.context, decisions: content.decisions, actions: content.actions, dependencies: content.dependencies },
  }),
  ask_human: object({
    ...change,
    ...asked,
    question: optional(
      statement('The question. Say what you need to know, and what you will do with the answer. With an action it may be left out.'),
    ),
    wait_seconds: waitSeconds,
  }),
  get_answer: object({
    packet_id: packetId,
    question_id: optional(Type.String({ description: 'The id of the question; the latest one of the packet if left out.' })),
    wait_seconds: waitSeconds,
  }),
  complete: object({ ...change, actions: content.actions, decisions: content.decisions }),
  fail: object({ ...change, reason: statement('Why the work failed.') }),
  wait_for_packet: object({
    packet_id: packetId,
    statuses: Type.Array(choice(statuses), {
      minItems: 1,
      maxItems: statuses.length,
      description: 'The wait ends when the packet has one of these statuses.',
    }),
    wait_seconds: waitSeconds,
  }),
  find_packets: object({
    text: optional(Type.String({ description: 'Words and "quoted phrases", all of which must occur; all packets if left out.' })),
    statuses: optional(Type.Array(choice(statuses), { minItems: 1 })),
    target_agent: optional(Type.String({ description: 'The agent that should continue the work.' })),
    source_agent: optional(Type.String({ description: 'The agent that handed over; not together with text.' })),
    claimed_by: optional(Type.String({ description: 'The agent that holds the packet; not together with text.' })),
    tags: optional(Type.Array(Type.String({ minLength: 1, pattern: '^[^,]*$' }), { minItems: 1, maxItems: 20 })),
    subject: optional(Type.String({ description: 'The id of a person whose data the packet holds.' })),
    limit: optional(Type.Integer({ minimum: 1, maximum: 50, description: 'The maximum number of packets; 10 if left out.' })),
    cursor: optional(Type.String({ description: 'The next_cursor of the previous page.' })),
  }),
  get_packet: object({ packet_id: packetId }),
  get_brief: object({
    packet_id: packetId,
    max_chars: optional(
      Type.Integer({ minimum: 200, maximum: 100_000, description: 'The maximum number of characters; 4000 if left out.' }),
    ),
    depth: optional(Type.Integer({ minimum: 0, maximum: 50, description: 'The maximum number of ancestors; 10 if left out.' })),
  }),
  get_history: object({ packet_id: packetId }),
  request_approval: object({
    tool_name: name('The tool that waits.', { maxLength: 256 }),
    input: record(Type.Unknown(), { description: 'Its arguments.' }),
    tool_use_id: optional(name('The id of the call: asked again with it, it is the same question.', { maxLength: 255 })),
    reason: optional(askedFields.reason),
    ...agent,
    timeout_seconds: optional(
      Type.Integer({ minimum: 1, maximum: 86_400, description: `How long to wait; ${approvalSeconds} if left out. Then it is denied.` }),
    ),
  }),
  get_contract: object({ target_agent: name('The id of the agent that you want to hand over to.') }),
} as const satisfies Record<string, TSchema>;

const nullable = (type: string, description: string) => Type.Unsafe<unknown>({ type: [type, 'null'], description });

const packetFields = {
  id: packetId,
  status: Type.String({ description: 'The status of the packet.' }),
  revision: Type.Integer({ description: 'The number of the revision.' }),
};
/** A packet in a result: the fields that matter to a program; the API description has all of them. */
const packet = Type.Object({
  ...packetFields,
  lease: nullable('object', 'The lease of the claim: generation, expires_at and, in the answer to a claim, token.'),
  hitl: nullable('object', 'The question to a person and its answer.'),
});
const answer = Type.Object({
  packet_id: packetId,
  question_id: nullable('string', 'The id of the question.'),
  answered: Type.Boolean(),
  status: Type.String({ description: 'The status of the packet.' }),
  question: nullable('string', 'The question.'),
  response: nullable('string', 'The answer of the person.'),
  responded_by: nullable('string', 'Who answered.'),
  answered_by: nullable('object', 'Who answered, whether that is verified, and how it is known.'),
  reason: nullable(
    'string',
    '`timed_out` when the question was not answered in time, `replaced` when another agent has changed it; otherwise null.',
  ),
  notes: nullable('string', 'Remarks of the person.'),
  decision: nullable(
    'object',
    'For a question about an action: decision, the arguments to execute with their digest, message and valid_until; otherwise null.',
  ),
});

/** The structured results of the tools. */
export const outputs = {
  packet,
  answer,
  claimed: Type.Object({ packet: nullable('object', 'The claimed packet; null when none was available in time.') }),
  lease: Type.Object({ lease: Type.Object({ generation: Type.Integer(), expires_at: nullable('string', 'When it expires.') }) }),
  page: Type.Object({ packets: Type.Array(Type.Object(packetFields)), next_cursor: nullable('string', 'The cursor of the next page.') }),
  brief: Type.Object({
    packet_id: packetId,
    chars: Type.Integer(),
    sections: Type.Array(Type.Unknown()),
    omitted: Type.Array(Type.Unknown()),
  }),
  history: Type.Object({ packet_id: packetId, events: Type.Array(Type.Unknown()) }),
  permission: Type.Object({
    behavior: Type.String({ description: 'allow or deny.' }),
    updatedInput: optional(Type.Unknown({ description: 'The arguments that were approved.' })),
    message: optional(Type.String({ description: 'Why it is denied.' })),
  }),
  contract: Type.Object({
    agent_id: Type.String({ description: 'The id of the agent.' }),
    version: nullable('integer', 'The version of the contract; null if the agent has none.'),
    schema: nullable('object', 'The JSON Schema that `{context, decisions, actions, dependencies, metadata}` of a packet must satisfy.'),
    description: nullable('string', 'What the agent needs.'),
    examples: Type.Array(Type.Unknown(), { description: 'What a packet may contain.' }),
  }),
} as const;
