import { invalid, type ServiceError } from '../../kit/errors.ts';
import type { FormField, FormSchema } from '../model/form.ts';

/** The most characters of the JSON of an answer. */
const maxDataLength = 16_384;

/** Requires that each field has a type or possible texts, and that the names in `required` are fields of the form. @throws ServiceError 400 */
export function requireSoundForm({ properties, required = [] }: FormSchema): void {
  const untyped = Object.keys(properties).find((name) => properties[name]!.type === undefined && properties[name]!.enum === undefined);
  if (untyped !== undefined) {
    const field = `hitl.schema.properties.${untyped}.type`;
    throw invalid(field, `${field} is required for a property without enum.`);
  }
  const unknown = required.find((name) => !Object.hasOwn(properties, name));
  if (unknown !== undefined)
    throw invalid('hitl.schema.required', `hitl.schema.required names ${unknown}, which is not a property of the schema.`);
}

/** Requires that the data of an answer satisfies the form. @throws ServiceError 400 that names the field */
export function requireData({ properties, required = [] }: FormSchema, data: Readonly<Record<string, unknown>>): void {
  if (JSON.stringify(data).length > maxDataLength) throw invalid('data', `data can have at most ${maxDataLength} characters as JSON.`);
  const missing = required.find((name) => !Object.hasOwn(data, name));
  if (missing !== undefined) throw wrong(missing, 'is required');
  for (const [name, value] of Object.entries(data)) {
    if (!Object.hasOwn(properties, name)) throw wrong(name, 'is not a field of the question');
    const fault = faultOf(properties[name]!, value);
    if (fault !== undefined) throw wrong(name, fault);
  }
}

const wrong = (name: string, fault: string): ServiceError => invalid(`data.${name}`, `data.${name} ${fault}.`);

function faultOf(field: FormField, value: unknown): string | undefined {
  switch (field.type) {
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'must be true or false';
    case 'string':
    case undefined:
      return typeof value === 'string' ? textFault(field, value) : 'must be a text';
    default:
      return typeof value === 'number' ? numberFault(field, value) : 'must be a number';
  }
}

function textFault(
  { enum: values, minLength = 0, maxLength = Number.POSITIVE_INFINITY, format }: FormField,
  value: string,
): string | undefined {
  if (values !== undefined && !values.includes(value)) return `must be one of ${values.join(', ')}`;
  const { length } = [...value];
  if (length < minLength) return `must have at least ${minLength} characters`;
  if (length > maxLength) return `can have at most ${maxLength} characters`;
  return format === undefined || formats[format](value) ? undefined : `must be a valid ${format}`;
}

function numberFault({ type, minimum, maximum }: FormField, value: number): string | undefined {
  if (type === 'integer' && !Number.isInteger(value)) return 'must be a whole number';
  if (minimum !== undefined && value < minimum) return `must be at least ${minimum}`;
  return maximum !== undefined && value > maximum ? `can be at most ${maximum}` : undefined;
}

const isDate = (text: string) => {
  const time = Date.parse(`${text}T00:00:00Z`);
  return /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
};

/** The formats of texts: those for which HTML forms have fields. */
const formats: Record<NonNullable<FormField['format']>, (text: string) => boolean> = {
  email: (text) => /^[^\s@]+@[^\s@]+$/.test(text),
  uri: (text) => /^[a-z][a-z0-9+.-]*:/i.test(text) && URL.canParse(text),
  date: isDate,
  'date-time': (text) => /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/i.test(text) && !Number.isNaN(Date.parse(text)),
};
