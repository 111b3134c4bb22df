import Type, { type TSchema } from 'typebox';

import { type ErrorCode, errorCodes, limitNames } from './errors.ts';
import type { Defaulted, ResponseShape } from './route.ts';

/** A text that says something; NUL is refused because PostgreSQL can't keep it in a column. */
export const name = (description: string, more: object = {}) =>
  Type.String({ minLength: 1, maxLength: 1024, pattern: '^[^\\u0000]*$', description, ...more });

/** A text that may be long, or empty. */
export const prose = (description: string) => Type.String({ description });

/** A text of about a line, or empty, with a bound for what is repeated in answers. */
export const remark = (description: string) => Type.String({ maxLength: 1024, description });

/** A text that may be long but not empty. */
export const statement = (description: string) => Type.String({ minLength: 1, description });

/** A moment as a service writes it. */
export const timestamp = (description: string) => Type.String({ format: 'date-time', description, example: '2026-03-01T09:30:00.000Z' });

/** A moment as a caller may write it. */
export const givenTimestamp = (description: string) =>
  Type.String({ format: 'timestamp', description: `${description} A date or date-time of ISO 8601.`, example: '2026-03-01T09:30:00Z' });

/** A required schema with a default, typed so that callers may leave it out where handlers find it. */
export const defaulted = <T extends TSchema>(schema: T): T & Defaulted => schema as T & Defaulted;

export const orNull = <T extends TSchema>(schema: T, description = '') =>
  Type.Union([schema, Type.Null()], description === '' ? {} : { description });

/** One of the named values, typed as them. */
export const choice = <const Values extends readonly string[]>(values: Values, options: object = {}) =>
  Type.Unsafe<Values[number]>({ type: 'string', enum: [...values], ...options });

export const Id = Type.String({ format: 'uuid', description: 'A UUID.', example: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b' });

/** The path parameter `id`. Whether it is one is the operation's to say: what is not is unknown (404), like any other. */
export const IdParams = Type.Object({ id: Type.String({ description: 'The id.', example: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b' }) });

/** The request header of an operation that takes an entity tag (RFC 9110, 13.1.1). */
export const IfMatch = { 'If-Match': 'The `ETag` the caller last saw; 412 when the resource has changed since. Optional.' };

/** The limit that a 429 is about. */
export const UsedUp = Type.Object(
  {
    name: choice(limitNames, { description: 'Which limit it is.' }),
    max: Type.Integer({ description: 'How much it allows.' }),
    reset_seconds: Type.Integer({ description: 'Seconds until there is room again, as in `Retry-After`.' }),
  },
  { description: 'The limit that is used up, with 429.' },
);

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
    limit: Type.Optional(UsedUp),
  },
  { description: 'The body of every error.' },
);

/** What may befall any request. */
const always = [400, 500, 503] as const;
type Failing<Status extends number> = Record<Status | (typeof always)[number], ResponseShape>;

/**
 * A service's `failing(401, 404)`: the failures that a route documents beside its success, those named and those that may
 * befall any request.
 * @param descriptions what each status means in this service
 */
export function failureShapes<const Descriptions extends Readonly<Record<number, string>>>(descriptions: Descriptions) {
  return <const Status extends keyof Descriptions & number>(...statuses: Status[]): Failing<Status> =>
    Object.fromEntries(
      [...statuses, ...always].map((status) => [status, { schema: Failure, description: descriptions[status] }]),
    ) as unknown as Failing<Status>;
}

/** The deepest place in a list that can be asked for. */
export const maxOffset = 1_000_000_000;

/** `limit` and `offset`, with the page size a route defaults to. */
export const paging = (limit = 50) => ({
  limit: defaulted(Type.Integer({ minimum: 1, maximum: 200, default: limit, description: 'The most items to return.' })),
  offset: defaulted(Type.Integer({ minimum: 0, maximum: maxOffset, default: 0, description: 'How many items to pass over.' })),
});
