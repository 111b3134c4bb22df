import Type, { type Static } from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { choice, Id, IdParams, IfMatch, name, object, orNull, record } from '../../kit/schemas.ts';
import { AgentId, failing, IdempotencyKey, LeaseToken, Replayed } from './common.ts';
import { Failure } from './errors.ts';
import { claimedExample, packetExample } from './examples.ts';
import { Answer, Asked, AskRequest, Question } from './hitl.ts';
import { packet } from './packet-routes.ts';
import { defineRoute } from './route.ts';

/** Where a question that was asked stands. */
const questionStates = ['open', 'answered', 'replaced', 'withdrawn', 'timed_out', 'ended'] as const;

/** A question that was asked, and what became of it. */
export const QuestionView = Type.Object({
  question_id: Id,
  state: choice(questionStates, {
    description:
      '`replaced`: an update made another question of it, named in `replaced_by`; `timed_out`: from the second in which the time to answer elapses; `ended`: its packet ended first.',
  }),
  question: Question,
  asked_by: Asked.properties.asked_by,
  requested_at: Asked.properties.requested_at,
  expires_at: Asked.properties.expires_at,
  shown: orNull(
    record(Type.Unknown()),
    'What a person is shown, or was shown who answered: the document of which `digest` is the SHA-256; null if it ended without an answer.',
  ),
  digest: Asked.properties.digest,
  answer: orNull(Answer),
  approvals: Type.Array(Type.Unknown(), { description: 'Who has approved so far; empty for a question that one person answers.' }),
  replaced_by: orNull(Id),
});
export type QuestionView = Static<typeof QuestionView>;

const questionId = '0197b5a9-11de-7c40-8f3b-5a6b7c8d9e0f';
const { options, reason, required, question, timeout_seconds } = packetExample.hitl;
const asked = {
  question_id: questionId,
  asked_by: { agent_id: 'resolver', agent_name: 'Resolver' },
  requested_at: '2026-03-01T09:33:00.000Z',
  expires_at: '2026-03-01T10:33:00.000Z',
};
const digest = '5d0c8bb5a9cd2cd3ba2d9a0f3d21e2c5b8c40b9fbb7d0a6f8ff6a4ef3b3a2d11';
const askedExample = {
  ...claimedExample,
  status: 'awaiting_human',
  revision: 3,
  hitl: { ...packetExample.hitl, ...asked, digest },
};
const questionExample = {
  ...asked,
  state: 'answered',
  question: { required, reason, question, options, timeout_seconds },
  shown: {
    question,
    reason,
    options,
    schema: null,
    summary: packetExample.context.summary,
    pending: packetExample.actions.pending,
    decisions: packetExample.decisions,
  },
  digest,
  answer: { response: 'Approve', responded_by: 'dana@example.com', responded_at: '2026-03-01T09:40:00.000Z', notes: 'Loyal customer' },
  approvals: [],
  replaced_by: null,
};

const AskConflict = Type.Interface([Failure], {
  question_id: Type.Optional(Type.String({ description: 'The open question, or the one that has the key.' })),
  question: Type.Optional(Question),
  answer: Type.Optional(orNull(Answer)),
});
const Location = { Location: 'The address of the question.' };

/** The routes of questions. */
const questionRoutes = routeTable('packets', {
  askQuestion: defineRoute({
    method: 'POST',
    path: '/packets/{id}/questions',
    access: 'work',
    summary: 'Ask a question',
    description:
      'Asks a person, and moves the packet to `awaiting_human`. The body has the fields of `hitl`; nothing of an earlier question remains, except that `exclude_source` stays until a key that may lift it does. With the `key` and the fields of a question that is open or answered, that question is asked: 200, and nothing changes. 409 `QUESTION_OPEN` while another question is open, `KEY_CHANGED` if the key belongs to a question with other fields.',
    params: IdParams,
    body: AskRequest,
    bodyExample: { question, reason, options, timeout_seconds, key: 'refund-4711' },
    nullIsAbsent: true,
    headers: { ...IfMatch, ...IdempotencyKey, ...AgentId, ...LeaseToken },
    responses: {
      200: packet('The packet: its question with this key was asked before.', askedExample, Location),
      201: packet('The packet, with its question.', askedExample, { ...Replayed, ...Location }),
      409: { schema: AskConflict, description: 'A question is open, or the key belongs to another one.' },
      ...failing(400, 401, 403, 404, 412, 413, 415, 429),
    },
  }),
  listQuestions: defineRoute({
    method: 'GET',
    path: '/packets/{id}/questions',
    access: 'read',
    summary: 'List the questions of a packet',
    description:
      'Every question that was asked, oldest first, with what became of it. Pass `next_cursor` as `cursor` for the next page; it is null on the last page.',
    params: IdParams,
    query: object({
      limit: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 200, description: 'The maximum number of items to return; 50 if left out.' }),
      ),
      key: Type.Optional(name('Only questions with this `key`; the last of them is the one that has it.')),
      cursor: Type.Optional(name('The `next_cursor` of the previous page.')),
    }),
    responses: {
      200: {
        schema: Type.Object({ questions: Type.Array(QuestionView), next_cursor: orNull(Type.String()) }),
        description: 'A page of questions.',
        example: { questions: [questionExample], next_cursor: null },
      },
      ...failing(400, 401, 403, 404, 429),
    },
  }),
  getQuestion: defineRoute({
    method: 'GET',
    path: '/packets/{id}/questions/{question_id}',
    access: 'read',
    summary: 'Get a question of a packet',
    description: 'A question that was asked, with its answer and what the person was shown.',
    params: Type.Object({ ...IdParams.properties, question_id: Type.String({ description: 'The id of the question.' }) }),
    responses: {
      200: { schema: QuestionView, description: 'The question.', example: questionExample },
      ...failing(401, 403, 404, 429),
    },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const questionApi = { routes: questionRoutes, schemas: { QuestionView, AskRequest, Question, Answer } };
