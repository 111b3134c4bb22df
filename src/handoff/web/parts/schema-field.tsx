import { CheckField, SelectField, TextField } from '../../../kit/web/components/field.tsx';
import type { FormField } from '../../model/form.ts';
import { fieldChoices, fieldType } from '../../model/form-values.ts';
import styles from './check-group.module.css';

interface SchemaFieldProps {
  label: string;
  schema: FormField;
  /** What was entered: several texts for an array. */
  texts: readonly string[];
  onChange: (texts: string[]) => void;
  error: string | undefined;
}

const inputTypes = { email: 'email', uri: 'url', date: 'date', 'date-time': 'text' } as const;

const yesOrNo = [
  { value: 'true', label: 'Yes' },
  { value: 'false', label: 'No' },
];

/** A field of a question's form. */
export function SchemaField({ label, schema, texts, onChange, error }: SchemaFieldProps) {
  const { description, format } = schema;
  const type = fieldType(schema);
  const choices =
    type === 'boolean' ? yesOrNo : fieldChoices(schema)?.map((choice) => ({ label: choice.label, value: String(choice.value) }));
  if (choices !== undefined && type === 'array')
    return (
      <fieldset className={styles.group} aria-invalid={error !== undefined || undefined}>
        <legend>{label}</legend>
        {description === undefined ? null : <p className="muted">{description}</p>}
        {choices.map(({ value, label: title }) => (
          <CheckField
            key={value}
            label={title}
            checked={texts.includes(value)}
            onChange={({ target }) => onChange(target.checked ? [...texts, value] : texts.filter((text) => text !== value))}
          />
        ))}
        {error === undefined ? null : <p role="alert">{error}</p>}
      </fieldset>
    );
  const common = {
    label,
    value: texts[0] ?? '',
    error,
    hint: description,
    onChange: ({ target }: { target: { value: string } }) => onChange([target.value]),
  };
  if (choices !== undefined) return <SelectField {...common} options={['', ...choices]} />;
  if (type !== 'string') return <TextField {...common} type="number" step={type === 'number' ? 'any' : 1} inputMode="decimal" />;
  return (
    <TextField
      {...common}
      type={format === undefined ? 'text' : inputTypes[format]}
      placeholder={format === 'date-time' ? '2026-03-01T09:30:00Z' : undefined}
    />
  );
}
