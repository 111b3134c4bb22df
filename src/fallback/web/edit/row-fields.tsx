import { Plus, Trash2 } from 'lucide-react';
import type { ReactNode } from 'react';

import { Button } from '../../../kit/web/components/button.tsx';
import { bind } from '../../../kit/web/components/form.tsx';
import styles from './row-fields.module.css';

interface RowFieldsProps<T> {
  legend: string;
  /** What a row is, in the labels of buttons. */
  what: string;
  rows: readonly T[];
  empty: () => T;
  onChange: (rows: T[]) => void;
  /** The fault of a field of a row. */
  faultOf: (row: number, name: string) => string | undefined;
  /** The fields of a row. */
  children: (bound: ReturnType<typeof bind<T>>) => ReactNode;
}

/** Rows of fields, with buttons to add and to remove one. */
export function RowFields<T extends object>({ legend, what, rows, empty, onChange, faultOf, children }: RowFieldsProps<T>) {
  return (
    <fieldset className={`${styles.rows} stack`}>
      <legend>{legend}</legend>
      {rows.map((row, index) => {
        const change = (changes: Partial<T>) => onChange(rows.map((other, at) => (at === index ? { ...other, ...changes } : other)));
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: a row is identified by its index.
          <div key={index} className={styles.row}>
            {children(bind(row, change, (name) => faultOf(index, name)))}
            <div className={styles.remove}>
              <Button
                look="quiet"
                icon={Trash2}
                aria-label={`Remove ${what} ${index + 1}`}
                onClick={() => onChange(rows.filter((_, at) => at !== index))}
              />
            </div>
          </div>
        );
      })}
      <div>
        <Button icon={Plus} onClick={() => onChange([...rows, empty()])}>
          Add {/^[aeiou]/.test(what) ? 'an' : 'a'} {what}
        </Button>
      </div>
    </fieldset>
  );
}
