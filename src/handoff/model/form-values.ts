// Without schemas, so that the console can load it without the schema library.
import type { FormField, FormSchema } from './form.ts';

/** A value that a field proposes, with its title. */
export interface FieldChoice {
  readonly value: string | number;
  readonly label: string;
}

/** The values of which a field takes one, or of an array several; undefined if it takes others. */
export function fieldChoices({ enum: values, enumNames = [], oneOf, items }: FormField): FieldChoice[] | undefined {
  const titled = oneOf ?? items?.anyOf;
  if (titled !== undefined) return titled.map(({ const: value, title }) => ({ value, label: title }));
  return (values ?? items?.enum)?.map((value, index) => ({ value, label: enumNames[index] ?? String(value) }));
}

/** The type of a field's value. */
export function fieldType(field: FormField): NonNullable<FormField['type']> {
  if (field.type !== undefined) return field.type;
  if (field.items !== undefined) return 'array';
  return fieldChoices(field)?.every(({ value }) => typeof value === 'number') ? 'number' : 'string';
}

/** The texts that a field of a form begins with: those of its default. */
export const defaultTexts = (field: FormField): string[] => (field.default === undefined ? [] : [field.default].flat().map(String));

/** A decimal number without signs and zeros that change nothing: its digits, and the power of ten of the last. */
function digitsOf(text: string): string | undefined {
  const parts = /^[+-]?(\d*)\.?(\d*)(?:e([+-]?\d+))?$/i.exec(text);
  if (parts === null || `${parts[1]}${parts[2]}` === '') return undefined;
  const [, whole = '', fraction = '', power = '0'] = parts;
  const digits = `${whole}${fraction}`.replace(/^0+/, '');
  const short = digits.replace(/0+$/, '');
  return short === '' ? '0' : `${short}e${Number(power) - fraction.length + digits.length - short.length}`;
}

/** The number of a text; the text itself if it is none, or one that a double changes. */
function readNumber(text: string): number | string {
  const digits = digitsOf(text);
  const number = Number(text);
  return digits !== undefined && Number.isFinite(number) && digitsOf(String(number)) === digits ? number : text;
}

/** The value of a field for the texts that a person entered or chose; undefined if it was left empty. What has another type stays a text. */
export function fieldValue(field: FormField, texts: readonly string[]): unknown {
  const given = texts.filter((text) => text !== '');
  const type = fieldType(field);
  const choices = fieldChoices(field);
  const chosen = (text: string) => choices?.find(({ value }) => String(value) === text)?.value ?? text;
  const [first] = given;
  if (first === undefined) return undefined;
  if (type === 'array') return given.map(chosen);
  if (choices !== undefined) return chosen(first);
  if (type === 'boolean') return first === 'true' ? true : first === 'false' ? false : first;
  return type === 'string' ? first : readNumber(first.trim());
}

/** The data of an answer for the texts that were entered in the fields of a form. A field that is left empty is left out. */
export function formData({ properties }: FormSchema, textsOf: (name: string) => readonly string[]): Record<string, unknown> {
  const given = Object.entries(properties).map(([name, field]): [string, unknown] => [name, fieldValue(field, textsOf(name))]);
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}
