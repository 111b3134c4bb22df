import Type, { type Static } from 'typebox';

import { choice, described, orNull, prose, record, remark, statement, timestamp } from '../../kit/schemas.ts';
import { Action, ActionDecision, EditedArguments, RememberLimits, ShadowVerdict, ShownApproval, ShownStep } from './action.ts';
import { FormSchema } from './form.ts';

/** What an agent asks: the fields of `hitl` in a request. */
export const question = {
  required: Type.Boolean({ description: 'Whether a person must answer before the packet can be completed.' }),
  reason: prose('Why a person is asked.', { example: 'Refunds over 50 need approval' }),
  question: statement('The question. With an action it may be left out.'),
  options: Type.Optional(
    Type.Array(
      Type.Unknown({
        description:
          'A possible answer: a text, or `{value, label?, style?}` with the style `default` or `danger`; the answer is its `value`.',
      }),
    ),
  ),
  strict_options: Type.Optional(Type.Boolean({ description: 'Whether the response must be one of the options.' })),
  schema: Type.Optional(FormSchema),
  action: Type.Optional(Action),
  responder: Type.Optional(remark('Who is asked: a name or a mail address. It is shown, and is no permission.')),
  remind_after_seconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 3_153_600_000,
      description: 'When to remind the channels once of the open question, from the moment it was first asked.',
    }),
  ),
  timeout_seconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 3_153_600_000,
      description: 'How long to wait for an answer, from the moment the question was first asked.',
    }),
  ),
  exclude_source: Type.Optional(
    Type.Boolean({
      description:
        'Whether the answer is refused from the keys that created or claimed the packet or asked the question, and from keys that they created. These keys can neither withdraw nor change the open question, nor lift this before it is asked, and it stays for later questions of the packet until another key lifts it; while a question is open, nobody can.',
    }),
  ),
  require_verified: Type.Optional(
    Type.Boolean({
      description:
        'Whether the answer is refused from anybody whose name is not verified (`answered_by`), and from tokens, which programs hold. It stays for later questions of the packet until a key that did not ask lifts it.',
    }),
  ),
  on_timeout: Type.Optional(choice(['keep', 'fail', 'expire'], { description: 'What happens at the timeout; `keep` if left out.' })),
  key: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      description:
        "The asker's own name of the question, unique in the packet: asking again with the same key and the same fields is the same question, open or answered.",
    }),
  ),
};

export const Question = Type.Object(question, { description: 'A checkpoint for a human.' });

const Asker = Type.Object({ agent_id: Type.String(), agent_name: Type.String() });

/** What the service sets when it asks. */
export const Asked = Type.Object({
  question_id: Type.String({
    description:
      'The id of the question. It is new each time that one is asked, and when an open one is changed so that its digest is another.',
  }),
  asked_by: Asker,
  requested_at: timestamp('When the question was first asked.'),
  expires_at: orNull(timestamp('When the time to answer ends.')),
  remind_at: Type.Optional(orNull(timestamp('When the reminder is due.'), 'Null when it was sent, or the question is answered.')),
  digest: Type.String({
    description:
      'The SHA-256, in hex, of what a person is shown: the canonical JSON (RFC 8785) of `{question, reason, options, schema, summary, pending, decisions}`, with null for options or a schema that the question does not have, and with `action` where it has one. It is set when the question is asked.',
  }),
  first_question_id: Type.Optional(
    Type.String({ description: 'The id under which the question was first asked; left out unless it was changed while it was open.' }),
  ),
  ended_at: Type.Optional(timestamp('When the packet ended before an answer; otherwise left out.')),
  approvals: Type.Optional(Type.Array(ShownApproval, { description: 'Who has approved the action.' })),
  step: Type.Optional(orNull(ShownStep, 'The step of the policy that is open; null without a policy that asks.')),
  edited: Type.Optional(EditedArguments),
  remember: Type.Optional(
    described(
      'What who approves may let stand for later (`remember` in an answer); left out where nothing may.',
      RememberLimits.properties,
    ),
  ),
  verified_only: Type.Optional(
    Type.Boolean({
      description:
        "True while a policy asks, also where it asks anybody: only a verified name counts that is not the asker's, and no token. Otherwise left out; `require_verified` then says whether a verified name is needed.",
    }),
  ),
  shadow: Type.Optional(Type.Array(ShadowVerdict, { description: 'What policies would have decided that are only tried.' })),
});

/** How it is known who answered. */
const answerMethods = ['sign_in', 'key', 'link', 'token', 'typed'] as const;

/** Who answered, and how that is known. */
export const AnsweredBy = described(
  'Who answered. The name is verified by a sign-in, by a key with that `responder`, by a link with that `responder` that a channel sent or that was made with the scope `manage` or by a key of that person, and by a token of that person. Any other name is only typed.',
  {
    name: Type.String(),
    verified: Type.Boolean({ description: 'Whether it is known that it was this person.' }),
    method: choice(answerMethods, { description: 'How the name is known; `typed`: somebody entered it.' }),
    subject: Type.Optional(Type.String({ description: "The identity provider's id of the person." })),
    key_id: Type.Optional(Type.String({ description: 'The key that sent the answer.' })),
    link_id: Type.Optional(Type.String({ description: 'The answer link that was used.' })),
  },
);
export type AnsweredBy = Static<typeof AnsweredBy>;

/** What a person answered. */
export const Answer = Type.Object({
  response: Type.String(),
  data: Type.Optional(record(Type.Unknown(), { description: 'The answer to a question with a schema.' })),
  responded_by: Type.String(),
  answered_by: Type.Optional(AnsweredBy),
  responded_at: timestamp('When the question was answered.'),
  notes: orNull(Type.String()),
  partial: Type.Optional(
    Type.Boolean({ description: 'True if the page left out text of the packet and the person did not open it; otherwise left out.' }),
  ),
  decision: Type.Optional(ActionDecision),
});

const asked = Asked.properties;
const answer = Answer.properties;

const repeated = Type.Optional(Type.Unknown({ description: 'The service sets it; a request may repeat what stands there.' }));

/** The fields of a request to ask: those of a question, of which only the text is required. */
export const askedFields = {
  ...question,
  required: Type.Optional(
    Type.Boolean({ description: 'Whether a person must answer before the packet can be completed; true if left out.' }),
  ),
  reason: Type.Optional(question.reason),
  question: Type.Optional(question.question),
};

/** A request to ask. */
export const AskRequest = described('The fields of `hitl`.', {
  ...askedFields,
  ...(Object.fromEntries([...Object.keys(asked), ...Object.keys(answer)].map((name) => [name, repeated])) as Record<
    keyof Asked | keyof Answer,
    typeof repeated
  >),
});

/** The latest question of a packet as the API shows it: what was asked, what the service set, what was answered. */
export const Hitl = Type.Object({
  ...question,
  response: orNull(answer.response),
  responded_by: orNull(answer.responded_by),
  responded_at: orNull(answer.responded_at),
  notes: answer.notes,
  question_id: orNull(asked.question_id, 'Null until it is asked.'),
  asked_by: orNull(
    asked.asked_by,
    'The agent that asked: the holder of the packet, or the agent that moved it to awaiting_human; null until the question is asked.',
  ),
  requested_at: orNull(asked.requested_at),
  expires_at: asked.expires_at,
  remind_at: asked.remind_at,
  answered_by: answer.answered_by,
  data: answer.data,
  partial: answer.partial,
  digest: Type.Optional(asked.digest),
  first_question_id: asked.first_question_id,
  ended_at: asked.ended_at,
  approvals: asked.approvals,
  step: asked.step,
  remember: asked.remember,
  verified_only: asked.verified_only,
  shadow: asked.shadow,
  edited: asked.edited,
  decision: answer.decision,
});

export type Question = Static<typeof Question>;
export type AskRequest = Static<typeof AskRequest>;
export type Asked = Static<typeof Asked>;
export type Answer = Static<typeof Answer>;
export type Hitl = Static<typeof Hitl>;
