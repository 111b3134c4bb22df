import Type, { type Static } from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { choice, described, Id, IdParams, name, object, prose } from '../../kit/schemas.ts';
import { Action, Execution } from './action.ts';
import { AgentId, failing, IdempotencyKey, indexedName, LeaseToken, priorities, Replayed } from './common.ts';
import { Failure } from './errors.ts';
import { answeredExample } from './examples.ts';
import { question } from './hitl.ts';
import { CreateRequest, Packet } from './packet.ts';
import { DryRunQuery, packet, Trial } from './packet-routes.ts';
import { defineRoute } from './route.ts';

const { conversation_state, artifacts, custom } = CreateRequest.properties.context.properties;

/** A request to ask about an action in one call. */
export const ApprovalRequest = object({
  agent: described('The agent that asks, and holds the packet.', {
    id: indexedName("The agent's id."),
    name: Type.Optional(name("The agent's name; its id if left out.")),
    framework: Type.Optional(prose('What the agent runs on.')),
  }),
  action: Action,
  reason: Type.Optional(question.reason),
  summary: Type.Optional(
    Type.String({ minLength: 1, description: 'The work so far, in natural language; the action in words if left out.' }),
  ),
  context: Type.Optional(object({ conversation_state, artifacts, custom })),
  tags: Type.Optional(CreateRequest.properties.metadata.properties.tags),
  subjects: CreateRequest.properties.metadata.properties.subjects,
  priority: Type.Optional(choice(priorities, { description: 'How urgent it is. Default: normal.' })),
  responder: question.responder,
  exclude_source: Type.Optional(Type.Boolean({ description: 'Whether the key that asks may not answer; true if left out.' })),
  timeout_seconds: question.timeout_seconds,
  on_timeout: question.on_timeout,
  parent_packet_id: Type.Optional(Id),
});
export type ApprovalRequest = Static<typeof ApprovalRequest>;

const digest = Type.String({
  pattern: '^[0-9a-f]{64}$',
  description: 'The `hitl.decision.arguments_digest` of what is executed: the SHA-256 of the canonical JSON (RFC 8785) of the arguments.',
});
const executionExample: Execution = {
  ...{ id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a90', question_id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a91', status: 'started' },
  ...{ arguments_digest: '5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef', started_at: '2026-03-01T09:41:00.000Z' },
  ...{ started_by: { agent_id: 'refunds', key_id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8d' }, ended_at: null, result: null },
};
const QuestionQuery = object({ question_id: Type.Optional(Type.String({ description: 'The id of a question of the packet.' })) });
const NotExecuted = Type.Interface([Failure], { execution: Type.Optional(Execution) });
const CallConflict = Type.Interface([Failure], {
  packet_id: Type.Optional(Type.String({ description: 'The packet that the call was asked about in.' })),
});

const approvalRoutes = routeTable('approvals', {
  askApproval: defineRoute({
    method: 'POST',
    path: '/approvals',
    access: 'work',
    summary: 'Ask for the approval of an action',
    description:
      'Makes a packet of the agent, held by it, that asks about a tool call; a policy may decide at once. The same agent and `action.call_id` again, at any time, gets the same packet, whatever became of it, so that an agent that was started over asks again; with another tool or other arguments 409 `CALL_CHANGED`. The packet ends by itself: `completed` when the execution ends or the action is not approved, `expired` when nothing was begun while the approval was valid.',
    body: ApprovalRequest,
    bodyExample: {
      agent: { id: 'refunds', name: 'Refund agent' },
      action: { tool: 'refund', arguments: { order: 'ORD-4711', amount: 500 }, call_id: 'call-1' },
      reason: 'The customer was charged twice',
    },
    nullIsAbsent: true,
    reportsDailyQuota: true,
    headers: AgentId,
    query: DryRunQuery,
    responses: {
      200: {
        ...packet(
          'The packet: the agent asked about the call before. With `dry_run=true`: whether the request would be taken.',
          answeredExample,
        ),
        // The client has a type of its own for a dry run, so that asking always returns a packet.
        schema: Type.Unsafe<Packet>(Type.Union([Packet, Trial])),
      },
      201: packet('The packet, which asks, or is decided.', answeredExample),
      409: {
        schema: CallConflict,
        description: 'The call was asked about with another tool or other arguments, or a guard refuses another packet.',
      },
      ...failing(400, 401, 403, 413, 415, 429),
    },
  }),
  startExecution: defineRoute({
    method: 'POST',
    path: '/packets/{id}/execution',
    access: 'work',
    summary: 'Start the execution of an approved action',
    description:
      'Of all calls for an approval one gets 201, and may execute the action with `hitl.decision.arguments`; every other gets 409: `ALREADY_EXECUTED` with the `execution`, `NOT_APPROVED`, `DIGEST_MISMATCH` or `APPROVAL_EXPIRED`. Send an `Idempotency-Key`, one random key per process and execution; repeat it only to retry that same request: a key that two processes share gets 201 for both.',
    params: IdParams,
    body: object({ arguments_digest: digest }),
    bodyExample: { arguments_digest: executionExample.arguments_digest },
    headers: { ...IdempotencyKey, ...AgentId, ...LeaseToken },
    responses: {
      201: {
        schema: Type.Object({ execution: Execution }),
        description: 'The execution: carry out the action.',
        example: { execution: executionExample },
        headers: Replayed,
      },
      409: { schema: NotExecuted, description: 'The action must not be executed.' },
      ...failing(400, 401, 403, 404, 413, 415, 429),
    },
  }),
  endExecution: defineRoute({
    method: 'PATCH',
    path: '/packets/{id}/execution',
    access: 'work',
    summary: 'Report the end of an execution',
    description:
      'Of the latest question of the packet, or of the one that is named: name it, so that the end is reported also when another question has been asked since. Once, by the key that started it, by one of its family, or by an admin key.',
    params: IdParams,
    query: QuestionQuery,
    body: object({
      status: choice(['succeeded', 'failed'], { description: 'How it ended.' }),
      result: Type.Optional(Type.Unknown({ description: 'What came of it, any JSON of at most 64 KiB.' })),
    }),
    bodyExample: { status: 'succeeded', result: { refund: 'R-1' } },
    headers: { ...AgentId, ...LeaseToken },
    responses: {
      200: {
        schema: Execution,
        description: 'The execution.',
        example: { ...executionExample, status: 'succeeded', ended_at: '2026-03-01T09:41:02.000Z', result: { refund: 'R-1' } },
      },
      409: { schema: NotExecuted, description: 'The end was reported already.' },
      ...failing(400, 401, 403, 404, 413, 415, 429),
    },
  }),
  getExecution: defineRoute({
    method: 'GET',
    path: '/packets/{id}/execution',
    access: 'read',
    summary: 'Get the execution of an approved action',
    description: 'Of the latest question of the packet, or of the one that is named. 404 where it was not begun.',
    params: IdParams,
    query: QuestionQuery,
    responses: {
      200: { schema: Execution, description: 'The execution.', example: executionExample },
      ...failing(400, 401, 403, 404, 429),
    },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const approvalApi = { routes: approvalRoutes, schemas: { Action, ApprovalRequest, Execution } };
