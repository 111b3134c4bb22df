import { type InputHTMLAttributes, type ReactNode, type SelectHTMLAttributes, type TextareaHTMLAttributes, useId } from 'react';

import styles from './field.module.css';

interface Frame {
  label: string;
  /** Hides the label visually, for controls below a column heading. Screen readers still read it. */
  labelHidden?: boolean;
  hint?: ReactNode;
  /** What is wrong with the value, as a sentence. */
  error?: string | undefined;
  /** The unit shown after a number: `ms`, `attempts`. */
  unit?: string;
}

type Described = Frame & {
  children: (props: { id: string; 'aria-describedby'?: string; 'aria-invalid'?: true; className: string }) => ReactNode;
};

/** A label with its control, hint and error, tied together for assistive technology. */
function Field({ label, labelHidden = false, hint, error, unit, children }: Described) {
  const id = useId();
  const described = [hint === undefined ? '' : `${id}-hint`, error === undefined ? '' : `${id}-error`].filter(Boolean).join(' ');
  return (
    <div className={styles.field}>
      <label htmlFor={id} className={labelHidden ? 'visually-hidden' : styles.label}>
        {label}
        {unit === undefined ? null : <span className="visually-hidden"> in {unit}</span>}
      </label>
      <div className={styles.control}>
        {children({
          id,
          className: styles.input!,
          ...(described === '' ? {} : { 'aria-describedby': described }),
          ...(error === undefined ? {} : { 'aria-invalid': true as const }),
        })}
        {unit === undefined ? null : (
          <span className={styles.unit} aria-hidden="true">
            {unit}
          </span>
        )}
      </div>
      {hint === undefined ? null : (
        <p id={`${id}-hint`} className={styles.hint}>
          {hint}
        </p>
      )}
      {error === undefined ? null : (
        <p id={`${id}-error`} className={styles.error}>
          {error}
        </p>
      )}
    </div>
  );
}

type Without<T> = Omit<T, 'id' | 'className' | 'children'>;

/** A line of text or a number. */
export function TextField({
  label,
  labelHidden,
  hint,
  error,
  unit,
  ...input
}: Frame & Without<InputHTMLAttributes<HTMLInputElement>> & { ref?: React.Ref<HTMLInputElement> }) {
  return (
    <Field {...defined({ label, labelHidden, hint, error, unit })}>
      {(props) => <input autoComplete="off" spellCheck={false} {...input} {...props} />}
    </Field>
  );
}

/** A text of several lines. */
export function TextArea({
  label,
  labelHidden,
  hint,
  error,
  code = false,
  ...input
}: Frame & Without<TextareaHTMLAttributes<HTMLTextAreaElement>> & { code?: boolean; ref?: React.Ref<HTMLTextAreaElement> }) {
  return (
    <Field {...defined({ label, labelHidden, hint, error })}>
      {(props) => <textarea spellCheck={!code} {...input} {...props} data-code={code || undefined} />}
    </Field>
  );
}

/** A choice among a few options. */
export function SelectField({
  label,
  labelHidden,
  hint,
  error,
  options,
  ...input
}: Frame & Without<SelectHTMLAttributes<HTMLSelectElement>> & { options: readonly (string | { value: string; label: string })[] }) {
  return (
    <Field {...defined({ label, labelHidden, hint, error })}>
      {(props) => (
        <select {...input} {...props}>
          {options.map((option) => {
            const { value, label: text } = typeof option === 'string' ? { value: option, label: option } : option;
            return (
              <option key={value} value={value}>
                {text}
              </option>
            );
          })}
        </select>
      )}
    </Field>
  );
}

/** A checkbox. */
export function CheckField({ label, hint, ...input }: { label: string; hint?: string } & Without<InputHTMLAttributes<HTMLInputElement>>) {
  const id = useId();
  return (
    <div className={styles.check}>
      <input id={id} type="checkbox" {...input} {...(hint === undefined ? {} : { 'aria-describedby': `${id}-hint` })} />
      <label htmlFor={id}>{label}</label>
      {hint === undefined ? null : (
        <p id={`${id}-hint`} className={styles.hint}>
          {hint}
        </p>
      )}
    </div>
  );
}

/** The frame without undefined properties (`exactOptionalPropertyTypes`). */
function defined(frame: { [Name in keyof Frame]: Frame[Name] | undefined } & { label: string }): Frame {
  return Object.fromEntries(Object.entries(frame).filter(([, value]) => value !== undefined)) as unknown as Frame;
}
