import { CheckField } from '../../../kit/web/components/field.tsx';
import styles from './check-group.module.css';

interface CheckGroupProps<T extends string> {
  legend: string;
  options: readonly T[];
  hints?: Readonly<Record<T, string>>;
  chosen: readonly string[];
  onChange: (chosen: T[]) => void;
}

/** Options of which any may be chosen. The chosen ones keep the order of the options. */
export const CheckGroup = <T extends string>({ legend, options, hints, chosen, onChange }: CheckGroupProps<T>) => (
  <fieldset className={styles.group}>
    <legend>{legend}</legend>
    {options.map((option) => (
      <CheckField
        key={option}
        label={option}
        {...(hints && { hint: hints[option] })}
        checked={chosen.includes(option)}
        onChange={({ target }) => onChange(options.filter((one) => (one === option ? target.checked : chosen.includes(one))))}
      />
    ))}
  </fieldset>
);
