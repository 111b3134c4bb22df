import Type, { type Static } from 'typebox';

import { choice, described, object, record } from '../../kit/schemas.ts';

const shortText = (description: string) => Type.String({ maxLength: 1024, description });
const length = (description: string) => Type.Optional(Type.Integer({ minimum: 0, maximum: 16_384, description }));
const choiceValue = Type.Union([shortText('A text.'), Type.Number()], { description: 'The value: a text or a number.' });
const titled = (description: string) =>
  Type.Array(object({ const: choiceValue, title: shortText('What is shown for it.') }), { minItems: 1, maxItems: 100, description });
const values = (description: string) => Type.Array(choiceValue, { minItems: 1, maxItems: 100, description });

const FormField = object({
  type: Type.Optional(
    choice(['string', 'number', 'integer', 'boolean', 'array'], {
      description: 'The type of the value, `array` for several choices; that of the choices if left out.',
    }),
  ),
  title: Type.Optional(shortText('The name of the field; that of the property if left out.')),
  description: Type.Optional(shortText('What to fill in.')),
  default: Type.Optional(
    Type.Union([shortText('A text.'), Type.Number(), Type.Boolean(), values('Several choices.')], {
      description: 'The value if the answer has none; forms are filled in with it.',
    }),
  ),
  enum: Type.Optional(values('The possible values.')),
  enumNames: Type.Optional(
    Type.Array(shortText('What is shown for a value.'), { maxItems: 100, description: 'What is shown for the values of `enum`.' }),
  ),
  oneOf: Type.Optional(titled('The possible values with their titles.')),
  items: Type.Optional(
    described('The choices of an array.', {
      type: Type.Optional(choice(['string', 'number', 'integer'], { description: 'The type of the choices.' })),
      enum: Type.Optional(values('The possible values.')),
      anyOf: Type.Optional(titled('The possible values with their titles.')),
    }),
  ),
  minItems: length('The minimum number of choices.'),
  maxItems: length('The maximum number of choices.'),
  format: Type.Optional(choice(['email', 'uri', 'date', 'date-time'], { description: 'The format of a text.' })),
  minLength: length('The minimum number of characters of a text.'),
  maxLength: length('The maximum number of characters of a text.'),
  minimum: Type.Optional(Type.Number({ description: 'The lowest number.' })),
  maximum: Type.Optional(Type.Number({ description: 'The highest number.' })),
});

/** The JSON Schema of a form: a flat object, of which people fill in the fields. What it may have is what elicitation of MCP 2026-07-28 has. */
export const FormSchema = described('A form for the answer, as JSON Schema: a flat object of texts, numbers, booleans and choices.', {
  $schema: Type.Optional(shortText('The dialect; ignored.')),
  type: choice(['object']),
  title: Type.Optional(shortText('The name of the form.')),
  description: Type.Optional(shortText('What the form is for.')),
  properties: record(FormField, { minProperties: 1, maxProperties: 20, description: 'The fields, by name.' }),
  required: Type.Optional(Type.Array(Type.String(), { maxItems: 20, description: 'The fields that must be filled in.' })),
  additionalProperties: Type.Optional(Type.Boolean({ description: 'Ignored: an answer has no other fields.' })),
});

export type FormField = Static<typeof FormField>;
export type FormSchema = Static<typeof FormSchema>;
