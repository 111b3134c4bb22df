import { isDate, isDateTime } from '../../kit/dates.ts';
import { invalid, type ServiceError } from '../../kit/errors.ts';
import type { FormField, FormSchema } from '../model/form.ts';
import { fieldChoices, fieldType } from '../model/form-values.ts';

/** The most characters of the JSON of an answer. */
const maxDataLength = 16_384;

/** Requires that each field has a type or choices that fit one another, and that the names in `required` are fields. @throws ServiceError 400 */
export function requireSoundForm({ properties, required = [] }: FormSchema): void {
  for (const [name, field] of Object.entries(properties)) {
    const fault = unsoundness(field);
    if (fault !== undefined) {
      const path = `hitl.schema.properties.${name}.${fault[0]}`;
      throw invalid(path, `${path} ${fault[1]}.`);
    }
  }
  const unknown = required.find((name) => !Object.hasOwn(properties, name));
  if (unknown !== undefined)
    throw invalid('hitl.schema.required', `hitl.schema.required names ${unknown}, which is not a property of the schema.`);
}

/** The keyword that makes a field one that nobody can fill in, and why. */
function unsoundness(field: FormField): [keyword: string, fault: string] | undefined {
  const choices = fieldChoices(field);
  if (field.type === undefined && choices === undefined) return ['type', 'is required for a property without enum'];
  if (field.enum !== undefined && field.oneOf !== undefined) return ['oneOf', 'is a second list of choices beside enum'];
  if (field.type === 'array' && (field.enum ?? field.oneOf) !== undefined)
    return ['items', 'has the choices of an array, not enum or oneOf'];
  if (field.type === 'boolean' && choices !== undefined) return ['enum', 'is not taken by a boolean'];
  if (field.enumNames !== undefined && field.enumNames.length !== field.enum?.length)
    return ['enumNames', 'must have a name for each value of enum'];
  const type = fieldType(field);
  if (type === 'array' && (field.items?.anyOf ?? field.items?.enum) === undefined)
    return ['items', 'is required for an array, with enum or anyOf'];
  if (type !== 'array' && field.items !== undefined) return ['items', 'is only taken by an array'];
  const one = type === 'array' ? (field.items?.type ?? (typeof choices![0]!.value === 'number' ? 'number' : 'string')) : type;
  const other = choices?.find(({ value }) => typeFault(one, value) !== undefined);
  if (other !== undefined)
    return [type === 'array' ? 'items' : field.enum === undefined ? 'oneOf' : 'enum', `has a choice that ${typeFault(one, other.value)}`];
  const fault = field.default === undefined ? undefined : faultOf(field, field.default);
  return fault === undefined ? undefined : ['default', fault];
}

/**
 * The data of an answer with the defaults of fields that it leaves out. Requires that it satisfies the form.
 * @throws ServiceError 400 that names the field
 */
export function dataOf({ properties, required = [] }: FormSchema, data: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const defaults = Object.entries(properties).flatMap(([name, field]) =>
    field.default === undefined || Object.hasOwn(data, name) ? [] : [[name, field.default]],
  );
  const whole = { ...data, ...Object.fromEntries(defaults) };
  if (JSON.stringify(whole).length > maxDataLength) throw invalid('data', `data can have at most ${maxDataLength} characters as JSON.`);
  const missing = required.find((name) => !Object.hasOwn(whole, name));
  if (missing !== undefined) throw wrong(missing, 'is required');
  for (const [name, value] of Object.entries(whole)) {
    if (!Object.hasOwn(properties, name)) throw wrong(name, 'is not a field of the question');
    const fault = faultOf(properties[name]!, value);
    if (fault !== undefined) throw wrong(name, fault);
  }
  return whole;
}

const wrong = (name: string, fault: string): ServiceError => invalid(`data.${name}`, `data.${name} ${fault}.`);

/** What is wrong with the value of a field, as the end of a sentence. */
function faultOf(field: FormField, value: unknown): string | undefined {
  const type = fieldType(field);
  const choices = fieldChoices(field);
  if (type === 'array') return listFault(field, choices ?? [], value);
  const fault = typeFault(type, value);
  if (fault !== undefined) return fault;
  if (choices !== undefined && !choices.some((one) => one.value === value)) return oneOf(choices);
  if (typeof value === 'number') return numberFault(field, value);
  return typeof value === 'string' ? textFault(field, value) : undefined;
}

const oneOf = (choices: readonly { value: string | number }[]) => `must be one of ${choices.map(({ value }) => value).join(', ')}`;

function typeFault(type: Exclude<FormField['type'], undefined>, value: unknown): string | undefined {
  if (type === 'boolean') return typeof value === 'boolean' ? undefined : 'must be true or false';
  if (type === 'string') return typeof value === 'string' ? undefined : 'must be a text';
  if (typeof value !== 'number' || !Number.isFinite(value))
    return typeof value === 'string' && /^[+-]?[\d.]+(e[+-]?\d+)?$/i.test(value)
      ? 'must be a number of at most 15 digits, up to about 1.8e308: it would be changed'
      : 'must be a number';
  if (type !== 'integer') return undefined;
  if (!Number.isInteger(value)) return 'must be a whole number';
  return Number.isSafeInteger(value) ? undefined : `must be a whole number up to ${Number.MAX_SAFE_INTEGER}: it would be changed`;
}

function listFault(
  { minItems = 0, maxItems = Number.POSITIVE_INFINITY }: FormField,
  choices: readonly { value: string | number }[],
  value: unknown,
) {
  if (!Array.isArray(value)) return 'must be a list of choices';
  if (value.some((item) => !choices.some((one) => one.value === item))) return `must have choices only; each ${oneOf(choices)}`;
  if (new Set(value).size < value.length) return 'must not have a choice twice';
  if (value.length < minItems) return `must have at least ${minItems} choices`;
  return value.length > maxItems ? `can have at most ${maxItems} choices` : undefined;
}

function textFault({ minLength = 0, maxLength = Number.POSITIVE_INFINITY, format }: FormField, value: string): string | undefined {
  const { length } = [...value];
  if (length < minLength) return `must have at least ${minLength} characters`;
  if (length > maxLength) return `can have at most ${maxLength} characters`;
  return format === undefined || formats[format](value) ? undefined : `must be a valid ${format}`;
}

function numberFault({ minimum, maximum }: FormField, value: number): string | undefined {
  if (minimum !== undefined && value < minimum) return `must be at least ${minimum}`;
  return maximum !== undefined && value > maximum ? `can be at most ${maximum}` : undefined;
}

/** The formats of texts: those for which HTML forms have fields. */
const formats: Record<NonNullable<FormField['format']>, (text: string) => boolean> = {
  email: (text) => /^[^\s@]+@[^\s@]+$/.test(text),
  uri: (text) => /^[a-z][a-z0-9+.-]*:/i.test(text) && URL.canParse(text),
  date: isDate,
  'date-time': isDateTime,
};
