import { readJson } from '../../../kit/json.ts';
import { besideField, faultsOf } from '../../../kit/web/app/transport.ts';
import { TextArea } from '../../../kit/web/components/field.tsx';
import type { Action } from '../../model/action.ts';
import type { FormField } from '../../model/form.ts';
import { fieldValue } from '../../model/form-values.ts';
import { SchemaField } from './schema-field.tsx';

type Arguments = Action['arguments'];

/** A value as JSON on several lines. */
export const jsonText = (value: unknown): string => JSON.stringify(value, null, 2);

/** Arguments as a person changes them: the texts of fields that were changed, or all as JSON. */
export interface ArgumentsDraft {
  readonly fields: Readonly<Record<string, readonly string[]>>;
  readonly text: string;
}

/** A member of a record, not of what all objects have, such as `toString`. */
const ownOf = <T,>(of: Readonly<Record<string, T>>, name: string): T | undefined => (Object.hasOwn(of, name) ? of[name] : undefined);

/** The properties of an action's schema, by name. */
function propertiesOf(schema: unknown): Readonly<Record<string, FormField>> {
  const { properties } = (schema ?? {}) as { properties?: unknown };
  return typeof properties === 'object' && properties !== null ? (properties as Record<string, FormField>) : {};
}

/** The titles of the fields in the schema of an action. */
export const titlesOf = (schema: unknown): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(propertiesOf(schema)).flatMap(([name, { title }]) => (typeof title === 'string' ? [[name, title]] : [])),
  );

const flatTypes: readonly unknown[] = ['string', 'number', 'integer', 'boolean'];
const isChoice = (value: unknown) => typeof value === 'string' || typeof value === 'number';

/** The field for an argument: as its schema describes it, else as its value is; undefined: it is no text, number, boolean or choice. */
function fieldOf(schema: Partial<Record<keyof FormField, unknown>> | undefined, value: unknown): FormField | undefined {
  const { enum: choices, title, description, type = choices === undefined ? typeof value : undefined } = schema ?? {};
  // A text of several lines does not fit into a field.
  if (typeof value === 'string' ? value.includes('\n') : typeof value === 'object') return undefined;
  if (choices === undefined ? !flatTypes.includes(type) : !(Array.isArray(choices) && choices.every(isChoice))) return undefined;
  return {
    ...(choices === undefined ? {} : { enum: choices as (string | number)[] }),
    ...(type === undefined ? {} : { type: type as FormField['type'] & string }),
    ...(typeof title === 'string' ? { title } : {}),
    ...(typeof description === 'string' ? { description } : {}),
  };
}

/** The fields for arguments, those of the schema first; undefined where one has no field, so that people change JSON. */
function fieldsOf(schema: unknown, given: Arguments): Readonly<Record<string, FormField>> | undefined {
  const properties = propertiesOf(schema);
  const names = [...new Set([...Object.keys(properties), ...Object.keys(given)])];
  const fields = names.map((name) => [name, fieldOf(ownOf(properties, name), ownOf(given, name))] as const);
  return names.length === 0 || fields.some(([, field]) => field === undefined)
    ? undefined
    : (Object.fromEntries(fields) as Record<string, FormField>);
}

/** The arguments that a person has made; undefined where the JSON is no object. */
export function argumentsIn({ schema }: Pick<Action, 'schema'>, given: Arguments, draft: ArgumentsDraft): Arguments | undefined {
  const fields = fieldsOf(schema, given);
  if (fields === undefined) return objectIn(draft.text);
  // A text that a person clears stays an argument; without it the tool would take its default.
  const emptied = (name: string) => (fields[name]!.enum === undefined && typeof ownOf(given, name) === 'string' ? '' : undefined);
  const changed = Object.entries(draft.fields).map(([name, texts]) => [name, fieldValue(fields[name]!, texts) ?? emptied(name)] as const);
  return Object.fromEntries(Object.entries({ ...given, ...Object.fromEntries(changed) }).filter(([, value]) => value !== undefined));
}

/** The object in a JSON text; undefined if it is none. */
function objectIn(text: string): Arguments | undefined {
  try {
    const value = readJson(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Arguments) : undefined;
  } catch {
    return undefined;
  }
}

interface ArgumentFieldsProps {
  action: Action;
  /** The arguments as they would be approved now. */
  given: Arguments;
  draft: ArgumentsDraft;
  onChange: (draft: ArgumentsDraft) => void;
  error: Error | null;
}

/** The arguments of an action to change: a field for each where all are texts, numbers, booleans and choices, else as JSON. */
export function ArgumentFields({ action: { schema }, given, draft, onChange, error }: ArgumentFieldsProps) {
  const fields = fieldsOf(schema, given);
  if (fields === undefined) {
    const titles = Object.entries(titlesOf(schema)).map(([name, title]) => `${name}: ${title}`);
    return (
      <TextArea
        label="Arguments, as JSON"
        hint={titles.length === 0 ? undefined : titles.join(', ')}
        rows={8}
        value={draft.text}
        spellCheck={false}
        onChange={({ target }) => onChange({ ...draft, text: target.value })}
      />
    );
  }
  return Object.entries(fields).map(([name, field]) => (
    <SchemaField
      key={name}
      label={field.title ?? name}
      schema={field}
      texts={ownOf(draft.fields, name) ?? (ownOf(given, name) === undefined ? [] : [String(given[name])])}
      onChange={(texts) => onChange({ ...draft, fields: { ...draft.fields, [name]: texts } })}
      error={
        faultsOf(error)
          .filter((fault) => fault.field === `arguments.${name}`)
          .map(besideField)[0]
      }
    />
  ));
}
