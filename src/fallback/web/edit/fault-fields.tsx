import { Plus, Trash2 } from 'lucide-react';

import { Button } from '../../../kit/web/components/button.tsx';
import { SelectField, TextField } from '../../../kit/web/components/field.tsx';
import { bind } from '../../../kit/web/components/form.tsx';
import { words } from '../../../kit/web/format.ts';
import { conditions } from '../../model/chain.ts';
import styles from './fault-fields.module.css';
import { emptyFault, type FaultDraft, faultNumbers } from './test-draft.ts';

interface FaultFieldsProps {
  faults: readonly FaultDraft[];
  providers: readonly string[];
  onChange: (faults: FaultDraft[]) => void;
  /** The fault of a field, by dotted path. */
  faultOf: (field: string) => string | undefined;
}

const conditionOptions = [{ value: '', label: 'only slow' }, ...conditions.map((value) => ({ value, label: words(value) }))];

/** The fields of a test's own faults. */
export function FaultFields({ faults, providers, onChange, faultOf }: FaultFieldsProps) {
  return (
    <fieldset className={`${styles.faults} stack`}>
      <legend>Faults, applied to every prompt</legend>
      {faults.map((fault, index) => {
        const change = (changes: Partial<FaultDraft>) =>
          onChange(faults.map((other, at) => (at === index ? { ...other, ...changes } : other)));
        const bound = bind(fault, change, (name) => faultOf(`faults.${index}.${name}`));
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: a fault is identified by its index.
          <div key={index} className={styles.fault}>
            <SelectField label="Provider" options={providers} {...bound('provider')} />
            <SelectField label="Fails with" options={conditionOptions} {...bound('condition')} />
            {faultNumbers.map(({ name, ...field }) => (
              <TextField key={name} {...field} type="number" min={0} step="any" {...bound(name)} />
            ))}
            <div className={styles.remove}>
              <Button
                look="quiet"
                icon={Trash2}
                aria-label={`Remove fault ${index + 1}`}
                onClick={() => onChange(faults.filter((_, at) => at !== index))}
              />
            </div>
          </div>
        );
      })}
      <div>
        <Button icon={Plus} onClick={() => onChange([...faults, emptyFault(providers[0]!)])}>
          Add a fault
        </Button>
      </div>
    </fieldset>
  );
}
