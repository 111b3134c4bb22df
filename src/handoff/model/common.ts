import Type, { type TSchema } from 'typebox';

import { type ErrorCode, errorCodes } from '../../kit/errors.ts';
import type { ResponseShape } from '../../kit/route.ts';

/** A text that says something; NUL is refused because PostgreSQL can't keep it in a column. */
export const name = (description: string, more: object = {}) =>
  Type.String({ minLength: 1, maxLength: 1024, pattern: '^[^\\u0000]*$', description, ...more });

/** A name that lists are filtered by: PostgreSQL's index takes no entry of more than 2,704 bytes. */
export const indexedName = (description: string) => name(description, { maxLength: 512 });

/** A text that may be long, or empty. */
export const prose = (description: string) => Type.String({ description });

/** A text of about a line, or empty. It is repeated in answers and in the trail, and so bounded. */
export const remark = (description: string) => Type.String({ maxLength: 1024, description });

/** A text that may be long but not empty. */
export const statement = (description: string) => Type.String({ minLength: 1, description });

/** A moment as the service writes it. */
export const timestamp = (description: string) => Type.String({ format: 'date-time', description, example: '2026-03-01T09:30:00.000Z' });

/** A moment as a caller may write it. */
export const givenTimestamp = (description: string) =>
  Type.String({ format: 'timestamp', description: `${description} A date or date-time of ISO 8601.`, example: '2026-03-01T09:30:00Z' });

export const orNull = <T extends TSchema>(schema: T, description = '') =>
  Type.Union([schema, Type.Null()], description === '' ? {} : { description });

/** One of the named values, typed as them. */
export const choice = <const Values extends readonly string[]>(values: Values, options: object = {}) =>
  Type.Unsafe<Values[number]>({ type: 'string', enum: [...values], ...options });

export const priorities = ['low', 'normal', 'high', 'critical'] as const;
export const statuses = ['created', 'claimed', 'in_progress', 'awaiting_human', 'completed', 'failed', 'expired'] as const;
export const tiers = ['free', 'pro', 'business'] as const;

export type Status = (typeof statuses)[number];
export type Tier = (typeof tiers)[number];

export const Id = Type.String({ format: 'uuid', description: 'A UUID.', example: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b' });

/** The body of every error. */
export const Failure = Type.Object(
  {
    detail: Type.String({ description: 'What is wrong, in a sentence.' }),
    code: choice(Object.keys(errorCodes) as ErrorCode[], { description: 'What is wrong, for a program.' }),
    field: orNull(Type.String(), 'The dotted path of the field at fault, or the name of the query parameter; null when there is none.'),
    status_code: Type.Integer({ description: 'The HTTP status.' }),
    request_id: Type.Optional(Type.String({ description: 'Finds the request in the log.' })),
    errors: Type.Optional(
      Type.Array(Type.Object({ field: Type.String(), detail: Type.String() }), {
        description: 'Every fault, where validation found several.',
      }),
    ),
  },
  { description: 'The body of every error.' },
);

const failures = {
  400: 'The request does not have the form this operation takes.',
  401: 'The API key is missing, unknown or revoked.',
  403: 'This needs an admin key.',
  404: 'Nothing of that id exists for this tenant.',
  409: 'The state of the resource does not allow this.',
  410: 'The resource has expired.',
  412: 'The resource changed since the version named in If-Match.',
  413: "The body is larger than the tenant's tier allows.",
  415: 'The body is not JSON in UTF-8.',
  429: 'A limit is used up; Retry-After says when to come back.',
  500: 'The service failed; the log has the cause under the `request_id`.',
  503: 'The database is out of reach, or too much is in hand; try again, with the same Idempotency-Key where the operation takes one.',
} as const;

/** What may befall any request. */
const always = [400, 500, 503] as const;
type Failing<Status extends number> = Record<Status | (typeof always)[number], ResponseShape>;

/** The failures that a route documents beside its success: those named, and those that may befall any request. */
export function failing<const Status extends keyof typeof failures>(...list: Status[]): Failing<Status> {
  return Object.fromEntries(
    [...list, ...always].map((status) => [status, { schema: Failure, description: failures[status] }]),
  ) as unknown as Failing<Status>;
}

/** The deepest place in a list that can be asked for. */
export const maxOffset = 1_000_000_000;

/** `limit` and `offset`, with the page size a route defaults to. */
export const paging = (limit = 50) => ({
  limit: Type.Integer({ minimum: 1, maximum: 200, default: limit, description: 'The most items to return.' }),
  offset: Type.Integer({ minimum: 0, maximum: maxOffset, default: 0, description: 'How many items to pass over.' }),
});

export const IdParams = Type.Object({ id: Type.String({ description: 'The id.', example: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b' }) });
export const IfMatch = { 'If-Match': 'The `ETag` the caller last saw; 412 when the resource has changed since. Optional.' };
export const IdempotencyKey = {
  'Idempotency-Key': 'Makes a repeated request answer as the first did, for 24 hours. 1 to 255 characters. Optional.',
};
/** Header of an answer that repeats an earlier one. */
export const Replayed = {
  'Idempotency-Replayed': '`true` when this repeats the answer to an earlier request with the same `Idempotency-Key`.',
};
export const AgentId = { 'X-Agent-Id': 'The agent to name in the trail as the one who did this. 1 to 255 characters. Optional.' };
