import Type, { type Static, type TNull, type TOptional, type TSchema, type TUnion } from 'typebox';
import { described, failureShapes, orNull } from '../../kit/schemas.ts';
import { Failure } from './errors.ts';

/** The documented failures of a route: the given statuses and those that any request may get. */
export const failing = failureShapes(Failure, {
  400: 'The request does not match the schema of this operation.',
  401: 'The API key is missing or unknown.',
  403: 'The label of this API key only permits reading.',
  404: 'There is no resource with this id.',
  409: 'The state of the resource does not allow this.',
  412: 'The resource changed since the version named in If-Match.',
  413: 'The body is too large.',
  415: 'The operation does not accept the media type of the body.',
  429: 'The rate limit is used up; Retry-After says when to try again.',
  500: 'The service failed; the log has the cause under the `request_id`.',
  503: 'The storage is unavailable, or the service is overloaded; try again.',
});

/** A name: not empty, at most 256 characters, without control characters. */
export const shortName = (description: string) =>
  Type.String({ minLength: 1, maxLength: 256, pattern: '^[^\\x00-\\x1f\\x7f]*$', description });

/** A field that may be left out or null; both mean the default in its description. */
export const optional = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

type Fields = Record<string, TSchema>;

/** The fields, each of which may be left out or null. */
export const eachOptional = <F extends Fields>(fields: F) =>
  mapped(fields, optional) as { [Name in keyof F]: TOptional<TUnion<[F[Name], TNull]>> };

/** The fields, each of which may be null. */
export const eachOrNull = <F extends Fields>(fields: F) =>
  mapped(fields, (schema) => orNull(schema)) as { [Name in keyof F]: TUnion<[F[Name], TNull]> };

const mapped = (fields: Fields, map: (schema: TSchema) => TSchema) =>
  Object.fromEntries(Object.entries(fields).map(([name, schema]) => [name, map(schema)])) as unknown;

/** A whole number from `minimum` to `maximum`. */
export const whole = (minimum: number, maximum: number, description: string, more: object = {}) =>
  Type.Integer({ minimum, maximum, description, ...more });

/** A count in a response. */
export const count = (description: string) => Type.Integer({ minimum: 0, description });

/** A duration in a response, in milliseconds. */
export const milliseconds = (description: string) => Type.Number({ minimum: 0, description });

/** A rate in a response, from 0 to 1. */
export const rate = (description: string) => Type.Number({ minimum: 0, maximum: 1, description });

export const exampleId = '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b';
export const exampleTime = '2026-03-01T09:30:00.000Z';

/** A warning, with `code` for programs and `detail` for people. */
export const Warning = described('A warning.', {
  code: Type.String({ description: 'The kind of warning.', example: 'priority_tie' }),
  field: orNull(Type.String(), 'The dotted path of the field it is about; null if there is none.'),
  detail: Type.String({ description: 'The warning as a sentence.' }),
  loss: Type.Boolean({
    description:
      'Whether what is exported or imported behaves otherwise than the original with whole answers; false for advice, and for what only streams do.',
  }),
});
export type Warning = Static<typeof Warning>;

/** Response headers. */
export const ETag = { ETag: 'The version in quotes, for `If-Match` and `If-None-Match`; of a list, what identifies all of its versions.' };
export const Location = { Location: 'The path of the created resource.' };
