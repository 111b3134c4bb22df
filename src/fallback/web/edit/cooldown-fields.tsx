import { useState } from 'react';

import { CheckField, TextField } from '../../../kit/web/components/field.tsx';
import { bind, Fields } from '../../../kit/web/components/form.tsx';
import { words } from '../../../kit/web/format.ts';
import { conditions } from '../../model/chain.ts';
import { countedByDefault } from '../../rules/conditions.ts';
import type { CooldownDraft } from './draft.ts';
import styles from './fields.module.css';

interface CooldownFieldsProps {
  cooldown: CooldownDraft;
  /** What the fields mean, and what empty ones do. */
  title: string;
  onChange: (changes: Partial<CooldownDraft>) => void;
  faultIn: (field: string) => string | undefined;
  onLeave: (field: string) => void;
}

const fields = [
  { name: 'allowed_fails', label: 'Allowed failures' },
  { name: 'window_ms', label: 'Counted within', unit: 'ms' },
  { name: 'seconds', label: 'Left out for', unit: 's' },
] as const;

/** The fields of a cool-down, of the chain or of a provider. */
export function CooldownFields({ cooldown, title, onChange, faultIn, onLeave }: CooldownFieldsProps) {
  const [isOwn, setOwn] = useState(cooldown.conditions.length > 0);
  const bound = bind(cooldown, onChange, faultIn, onLeave);
  const fault = faultIn('conditions');
  return (
    <fieldset className={styles.cooldown}>
      <legend>{title}</legend>
      <Fields min="9rem">
        {fields.map(({ name, ...field }) => (
          <TextField key={name} {...field} inputMode="numeric" placeholder="none" {...bound(name)} />
        ))}
      </Fields>
      <CheckField
        label="Choose the failures that count"
        checked={isOwn}
        onChange={({ target }) => {
          setOwn(target.checked);
          onChange({ conditions: target.checked ? countedByDefault : [] });
        }}
      />
      {isOwn ? (
        <div className={styles.conditions}>
          {conditions.map((condition) => (
            <CheckField
              key={condition}
              label={words(condition)}
              checked={cooldown.conditions.includes(condition)}
              onChange={({ target }) =>
                onChange({
                  conditions: conditions.filter((one) => (one === condition ? target.checked : cooldown.conditions.includes(one))),
                })
              }
            />
          ))}
        </div>
      ) : null}
      {fault === undefined ? null : <p className={styles.fault}>{fault}</p>}
    </fieldset>
  );
}
