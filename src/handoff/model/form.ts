import Type, { type Static } from 'typebox';

import { choice, described, object, record } from '../../kit/schemas.ts';

const shortText = (description: string) => Type.String({ maxLength: 1024, description });
const length = (description: string) => Type.Optional(Type.Integer({ minimum: 0, maximum: 16_384, description }));

const FormField = object({
  type: Type.Optional(
    choice(['string', 'number', 'integer', 'boolean'], { description: 'The type of the value; a text if only `enum` is given.' }),
  ),
  title: Type.Optional(shortText('The name of the field; that of the property if left out.')),
  description: Type.Optional(shortText('What to fill in.')),
  enum: Type.Optional(Type.Array(shortText('A possible text.'), { minItems: 1, maxItems: 100, description: 'The possible texts.' })),
  format: Type.Optional(choice(['email', 'uri', 'date', 'date-time'], { description: 'The format of a text.' })),
  minLength: length('The minimum number of characters of a text.'),
  maxLength: length('The maximum number of characters of a text.'),
  minimum: Type.Optional(Type.Number({ description: 'The lowest number.' })),
  maximum: Type.Optional(Type.Number({ description: 'The highest number.' })),
});

/** The JSON Schema of a form: a flat object, of which people fill in the fields. */
export const FormSchema = described('A form for the answer, as JSON Schema: a flat object of texts, numbers and booleans.', {
  type: choice(['object']),
  title: Type.Optional(shortText('The name of the form.')),
  description: Type.Optional(shortText('What the form is for.')),
  properties: record(FormField, { minProperties: 1, maxProperties: 20, description: 'The fields, by name.' }),
  required: Type.Optional(Type.Array(Type.String(), { maxItems: 20, description: 'The fields that must be filled in.' })),
  additionalProperties: Type.Optional(Type.Boolean({ description: 'Ignored: an answer has no other fields.' })),
});

export type FormField = Static<typeof FormField>;
export type FormSchema = Static<typeof FormSchema>;
