import type { FormField, FormSchema } from '../../model/form.ts';

/** The value of a field of a form; undefined if it was left empty. */
function fieldValue({ type }: FormField, text: string): unknown {
  if (text === '') return undefined;
  if (type === 'boolean') return text === 'true';
  return type === undefined || type === 'string' ? text : Number(text);
}

/** The data of an answer from the texts that were entered; the service checks it. */
export const dataOf = ({ properties }: FormSchema, texts: Readonly<Record<string, string>>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(properties).flatMap(([name, field]) => {
      const value = fieldValue(field, texts[name] ?? '');
      return value === undefined ? [] : [[name, value]];
    }),
  );
