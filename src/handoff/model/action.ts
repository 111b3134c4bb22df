import Type, { type Static } from 'typebox';
import { choice, described, name, object, orNull, record, remark, timestamp } from '../../kit/schemas.ts';

/** What a person may decide about an action. `respond`: the person answers instead of the tool. */
export const decisions = ['approve', 'edit', 'reject', 'respond'] as const;
export type DecisionWord = (typeof decisions)[number];

/** How long an approval can be executed unless the action says otherwise: a day. */
export const usualValidSeconds = 86_400;

const anyObject = (description: string) => record(Type.Unknown(), { description });
const digest = (description: string) => Type.String({ pattern: '^[0-9a-f]{64}$', description });

const argumentsDigest = 'The SHA-256, in hex, of the canonical JSON (RFC 8785) of the arguments.';

/** What a person may approve for later: the same call, or any call of the tool. */
export const rememberScopes = ['call', 'tool'] as const;

/** How long an approval may stand where no policy says otherwise: 30 days. */
export const usualRememberSeconds = 2_592_000;

/** A request to let an approval stand for later actions. */
export const Remember = object({
  scope: choice(rememberScopes, { description: '`call`: the same tool with the same arguments; `tool`: with any.' }),
  seconds: Type.Integer({ minimum: 1, maximum: 31_536_000, description: 'How long it stands.' }),
});
export type Remember = Static<typeof Remember>;

/** What approvers may let stand for later. */
export const RememberLimits = object({
  scope: choice(rememberScopes, { description: '`call`: the same call; `tool`: any call of the tool too.' }),
  max_seconds: Type.Integer({ description: 'How long at most.' }),
});

/** A tool call that waits for an approval. */
export const Action = described('A tool call that waits for an approval.', {
  tool: name('The tool.', { maxLength: 256 }),
  arguments: anyObject(
    'The arguments of the call: at most 64 KiB as JSON, 32 deep, without numbers that a double does not hold exactly as an integer.',
  ),
  arguments_digest: Type.Optional(digest(`${argumentsDigest} The service sets it; a request may repeat it.`)),
  title: Type.Optional(remark('What the action is called, for people.')),
  description: Type.Optional(remark('What the action does, for people.')),
  schema: Type.Optional(
    anyObject('A JSON Schema (2020-12) of the arguments, with the bounds of contracts; proposed and edited ones must satisfy it.'),
  ),
  decisions: Type.Optional(
    Type.Array(choice(decisions), {
      minItems: 1,
      maxItems: decisions.length,
      description: 'What is offered; `approve`, `edit` and `reject` if left out. `reject` always is.',
    }),
  ),
  call_id: Type.Optional(name("The id of the call in the agent's framework.", { maxLength: 255 })),
  valid_seconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 31_536_000,
      description: 'How long an approval can be executed after it was given; 86,400 if left out.',
    }),
  ),
});
export type Action = Static<typeof Action>;

const method = choice(['sign_in', 'key', 'link', 'token', 'typed'], { description: 'How the person was known.' });
const partial = Type.Optional(
  Type.Boolean({ description: 'True if the page left out text of the packet and the person did not open it; otherwise left out.' }),
);
const place = orNull(Type.String(), 'Whose place the person took as a delegate; null: the own one.');

/** An approval of a person, as `hitl.approvals` shows it. */
export const ShownApproval = object({
  step: Type.Integer({ minimum: 1, description: 'The step in which it was given, from 1.' }),
  name: Type.String(),
  for: place,
  decision: choice(['approve', 'edit']),
  at: timestamp('When it was given.'),
  void: Type.Boolean({ description: 'Whether it counts for nothing any more, since the action was changed.' }),
  verified: Type.Boolean(),
  method,
  key_id: orNull(Type.String()),
  partial,
  standing_id: Type.Optional(Type.String({ description: 'The standing approval that gave it; otherwise left out.' })),
});

/** The arguments as a person changed them, while others are still asked. */
export const EditedArguments = object({
  arguments: anyObject('The arguments as they would be approved now.'),
  arguments_digest: digest(argumentsDigest),
  name: Type.String({ description: 'Who changed them last.' }),
  at: timestamp('When.'),
});

/** The step that is open. */
export const ShownStep = object({
  index: Type.Integer({ minimum: 1, description: 'Its number, from 1.' }),
  of: Type.Integer({ minimum: 1 }),
  count: Type.Integer({ minimum: 1, description: 'How many different people must approve.' }),
  given: Type.Integer({ minimum: 0, description: 'How many have.' }),
  from: Type.Array(Type.String(), { description: 'The people and groups that are asked.' }),
  changes_at: orNull(timestamp('When time alone changes it.'), 'When time alone changes it; null: never.'),
});

const policyRef = object({
  name: Type.String(),
  version: Type.Integer(),
  rule: orNull(Type.Integer(), 'The number of the rule, from 1; null if no rule fits.'),
});

/** What was decided about an action. */
export const ActionDecision = object({
  decision: choice(decisions, { description: '`edit`: the approved arguments are edited ones.' }),
  arguments: anyObject('The arguments that were approved, or those that were not.'),
  arguments_digest: digest(argumentsDigest),
  message: orNull(Type.String(), 'What the person says to the agent.'),
  decided_at: timestamp('When it was decided.'),
  valid_until: orNull(timestamp('Until when it can be executed.'), 'Until when it can be executed; null if it was not approved.'),
  by: Type.Array(
    object({
      ...{ name: Type.String(), verified: Type.Boolean(), method, key_id: orNull(Type.String()), for: place },
      ...{ decision: choice(decisions), at: timestamp('When the person decided.'), partial },
    }),
    { description: 'Who decided; empty where a rule or the time did.' },
  ),
  policy: orNull(policyRef, 'The policy that decided or whose steps were asked; null without one.'),
  standing_id: orNull(Type.String(), 'The standing approval that gave the last approval; null: none did.'),
});
export type ActionDecision = Static<typeof ActionDecision>;

/** What a policy would have decided that is only tried. */
export const ShadowVerdict = object({
  policy: Type.String(),
  version: Type.Integer(),
  rule: orNull(Type.Integer()),
  then: orNull(record(Type.Unknown())),
});
export type ShadowVerdict = Static<typeof ShadowVerdict>;

/** The execution of an approved action. */
export const Execution = object({
  id: Type.String(),
  question_id: Type.String(),
  status: choice(['started', 'succeeded', 'failed'], {
    description: '`started` stays if the process dies before it reports the end: then it may have happened.',
  }),
  arguments_digest: digest(argumentsDigest),
  started_at: timestamp('When it was started.'),
  started_by: object({ agent_id: Type.String(), key_id: orNull(Type.String()) }),
  ended_at: orNull(timestamp('When its end was reported.')),
  result: Type.Unknown({ description: 'What was reported, any JSON; null before.' }),
});
export type Execution = Static<typeof Execution>;

export type ShownApproval = Static<typeof ShownApproval>;
export type ShownStep = Static<typeof ShownStep>;
