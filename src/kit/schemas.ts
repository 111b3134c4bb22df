import Type, { type Static, type TSchema } from 'typebox';

import { limitNames } from './errors.ts';
import type { CommaList, Defaulted, ResponseShape } from './route.ts';

/** A short text that is not empty. It may not contain NUL, which PostgreSQL can't store in a text column. */
export const name = (description: string, more: object = {}) =>
  Type.String({ minLength: 1, maxLength: 1024, pattern: '^[^\\x00]*$', description, ...more });

/** A text of any length, possibly empty. */
export const prose = (description: string, more: { example?: string } = {}) => Type.String({ description, ...more });

/** A short text, possibly empty; bounded because answers repeat it. */
export const remark = (description: string) => Type.String({ maxLength: 1024, description });

/** A text of any length that is not empty. */
export const statement = (description: string) => Type.String({ minLength: 1, description });

/** A date-time in a response. */
export const timestamp = (description: string) => Type.String({ format: 'date-time', description, example: '2026-03-01T09:30:00.000Z' });

/** A date or date-time in a request. */
export const givenTimestamp = (description: string) =>
  Type.String({ format: 'timestamp', description: `${description} A date or date-time of ISO 8601.`, example: '2026-03-01T09:30:00Z' });

/** A schema with a default, typed so that callers may leave the value out and handlers always get it. */
export const defaulted = <T extends TSchema>(schema: T): T & Defaulted => schema as T & Defaulted;

export const orNull = <T extends TSchema>(schema: T, description = '') =>
  Type.Union([schema, Type.Null()], description === '' ? {} : { description });

/** An object that refuses unknown fields. */
export const object = <F extends Record<string, TSchema>>(fields: F) => Type.Object(fields, { additionalProperties: false });

/** An object that refuses unknown fields, with a description. */
export const described = <F extends Record<string, TSchema>>(description: string, fields: F) =>
  Type.Object(fields, { additionalProperties: false, description });

/**
 * An object with free names, whose values have one schema. Its names may have one too. A name with a line break would escape the
 * schema of a TypeBox record, which is a pattern.
 */
export const record = <T extends TSchema>(value: T, options: { propertyNames?: TSchema; [keyword: string]: unknown } = {}) =>
  Type.Unsafe<Record<string, Static<T>>>({ type: 'object', ...options, additionalProperties: value });

/** One of the given values. */
export const choice = <const Values extends readonly string[]>(values: Values, options: object = {}) =>
  Type.Unsafe<Values[number]>({ type: 'string', enum: [...values], ...options });

/** A text of comma-separated items, typed so that clients give an item or an array of them. */
export const commaList = <Item extends string = string>(options: Type.TStringOptions): Type.TString & CommaList<Item> =>
  Type.String(options) as Type.TString & CommaList<Item>;

export const Id = Type.String({ format: 'uuid', description: 'A UUID.', example: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b' });

/** The path parameter `id`. Its form is not validated: a malformed id gets 404 like any unknown id. */
export const IdParams = Type.Object({ id: Type.String({ description: 'The id.', example: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b' }) });

/** The request header of an operation that takes an entity tag (RFC 9110, 13.1.1). */
export const IfMatch = { 'If-Match': 'The `ETag` that the caller last saw; 412 if the resource has changed since. Optional.' };

/** The limit that a 429 reports. */
export const UsedUp = Type.Object(
  {
    name: choice(limitNames, { description: 'The name of the limit.' }),
    max: Type.Integer({ description: 'How much it allows.' }),
    reset_seconds: Type.Integer({ description: 'Seconds until a request is accepted again, as in `Retry-After`.' }),
  },
  { description: 'The limit that is used up, with 429.' },
);

/** The body of every error of a service that has these codes. */
export const failureOf = <Code extends string>(codes: Readonly<Record<Code, unknown>>) =>
  Type.Object(
    {
      detail: Type.String({ description: 'What is wrong, in a sentence.' }),
      code: choice(Object.keys(codes) as Code[], { description: 'What is wrong, for a program.' }),
      field: orNull(
        Type.String(),
        'The dotted path of the invalid field, or the name of the query parameter; null if the error is not about a field.',
      ),
      status_code: Type.Integer({ description: 'The HTTP status.' }),
      request_id: Type.Optional(Type.String({ description: 'The id of the request in the log.' })),
      errors: Type.Optional(
        Type.Array(Type.Object({ field: Type.String(), detail: Type.String() }), {
          description: 'All faults, if validation found several.',
        }),
      ),
      limit: Type.Optional(UsedUp),
    },
    { description: 'The body of every error.' },
  );

/** Failures that any request may get. */
const always = [400, 500, 503] as const;
type Failing<Status extends number> = Record<Status | (typeof always)[number], ResponseShape>;

/**
 * Creates a service's `failing(401, 404)`: the documented failures of a route, which are the given statuses and those
 * that any request may get.
 * @param failure the schema of the body
 * @param descriptions what each status means in this service
 */
export function failureShapes<const Descriptions extends Readonly<Record<number, string>>>(failure: TSchema, descriptions: Descriptions) {
  return <const Status extends keyof Descriptions & number>(...statuses: Status[]): Failing<Status> =>
    Object.fromEntries(
      [...statuses, ...always].map((status) => [status, { schema: failure, description: descriptions[status] }]),
    ) as unknown as Failing<Status>;
}

/** The highest `offset`. */
export const maxOffset = 1_000_000_000;

/** `limit` and `offset`, with the default page size of a route. */
export const paging = (limit = 50) => ({
  limit: defaulted(Type.Integer({ minimum: 1, maximum: 200, default: limit, description: 'The maximum number of items to return.' })),
  offset: defaulted(Type.Integer({ minimum: 0, maximum: maxOffset, default: 0, description: 'How many items to skip.' })),
});
