import Type, { type Static, type TSchema } from 'typebox';

import { failureShapes, orNull } from '../../kit/schemas.ts';

/** The failures that a route documents beside its success: those named, and those that may befall any request. */
export const failing = failureShapes({
  400: 'The request does not have the form this operation takes.',
  401: 'The API key is missing or unknown.',
  403: 'The label of this API key permits reading only.',
  404: 'Nothing of that id exists.',
  409: 'The state of the resource does not allow this.',
  412: 'The resource changed since the version named in If-Match.',
  413: 'The body is larger than a request may be.',
  415: 'The body does not have the media type this operation takes.',
  429: 'The rate limit is used up; Retry-After says when to come back.',
  500: 'The service failed; the log has the cause under the `request_id`.',
  503: 'The storage is out of reach, or too much is in hand; try again.',
});

/** What a schema has that refuses fields it does not name. */
export const closed = { additionalProperties: false };

/** A name of a thing: something, of at most 256 characters, without control characters. */
export const shortName = (description: string) =>
  Type.String({ minLength: 1, maxLength: 256, pattern: '^[^\\u0000-\\u001f\\u007f]*$', description });

/** A field that may be left out or null; both mean the default that its description names. */
export const optional = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

/** A whole number from `minimum` to `maximum`. */
export const whole = (minimum: number, maximum: number, description: string, more: object = {}) =>
  Type.Integer({ minimum, maximum, description, ...more });

/** A count in an answer. */
export const count = (description: string) => Type.Integer({ minimum: 0, description });

/** A duration in an answer, in milliseconds. */
export const milliseconds = (description: string) => Type.Number({ minimum: 0, description });

/** A share in an answer, from 0 to 1. */
export const rate = (description: string) => Type.Number({ minimum: 0, maximum: 1, description });

export const exampleId = '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b';
export const exampleTime = '2026-03-01T09:30:00.000Z';

/** Something a caller should know that is no error: a program reads `code`, a person `detail`. */
export const Warning = Type.Object(
  {
    code: Type.String({ description: 'What it is about, for a program.', example: 'priority_tie' }),
    field: orNull(Type.String(), 'The dotted path of the field it is about; null when there is none.'),
    detail: Type.String({ description: 'What it means, in a sentence.' }),
  },
  { ...closed, description: 'Something a caller should know that is no error.' },
);
export type Warning = Static<typeof Warning>;

/** Headers of answers. */
export const ETag = { ETag: 'The version in quotes, for If-Match.' };
export const Location = { Location: 'The path of what was made.' };
