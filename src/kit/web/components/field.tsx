import { type InputHTMLAttributes, type ReactNode, type SelectHTMLAttributes, type TextareaHTMLAttributes, useId } from 'react';

import styles from './field.module.css';

/** The texts around a control. */
interface FieldTexts {
  label: string;
  /** Hides the label visually, for controls below a column heading. Screen readers still read it. */
  labelHidden?: boolean;
  hint?: ReactNode;
  /** What is wrong with the value, as a sentence. */
  error?: string | undefined;
  /** The unit shown after a number: `ms`, `attempts`. */
  unit?: string;
}

/** The attributes by which a control refers to its label, hint and error, for assistive technology. */
interface ControlProps {
  id: string;
  className: string;
  'aria-describedby'?: string;
  'aria-invalid'?: true;
}

interface FieldProps<Props extends FieldTexts> {
  props: Props;
  control: (props: Omit<Props, keyof FieldTexts> & ControlProps) => ReactNode;
}

/** A label with its control, hint and error. */
function Field<Props extends FieldTexts>({
  props: { label, labelHidden = false, hint, error, unit, ...given },
  control,
}: FieldProps<Props>) {
  const id = useId();
  const described = [hint === undefined ? '' : `${id}-hint`, error === undefined ? '' : `${id}-error`].filter(Boolean).join(' ');
  return (
    <div className={styles.field}>
      <label htmlFor={id} className={labelHidden ? 'visually-hidden' : styles.label}>
        {label}
        {unit === undefined ? null : <span className="visually-hidden"> in {unit}</span>}
      </label>
      <div className={styles.control}>
        {control({
          ...given,
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
export function TextField(props: FieldTexts & Without<InputHTMLAttributes<HTMLInputElement>> & { ref?: React.Ref<HTMLInputElement> }) {
  return <Field props={props} control={(input) => <input autoComplete="off" spellCheck={false} {...input} />} />;
}

type TextAreaProps = FieldTexts &
  Without<TextareaHTMLAttributes<HTMLTextAreaElement>> & { code?: boolean; ref?: React.Ref<HTMLTextAreaElement> };

/** A text of several lines. */
export function TextArea({ code = false, ...props }: TextAreaProps) {
  return <Field props={props} control={(input) => <textarea spellCheck={!code} {...input} data-code={code || undefined} />} />;
}

type SelectProps = FieldTexts &
  Without<SelectHTMLAttributes<HTMLSelectElement>> & { options: readonly (string | { value: string; label: string })[] };

/** A choice among a few options. */
export function SelectField({ options, ...props }: SelectProps) {
  const control = (select: Without<SelectHTMLAttributes<HTMLSelectElement>>) => (
    <select {...select}>
      {options.map((option) => {
        const { value, label } = typeof option === 'string' ? { value: option, label: option } : option;
        return (
          <option key={value} value={value}>
            {label}
          </option>
        );
      })}
    </select>
  );
  return <Field props={props} control={control} />;
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
