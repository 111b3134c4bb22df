import { Trash2 } from 'lucide-react';
import { useState } from 'react';

import { Button } from '../../../kit/web/components/button.tsx';
import { TextField } from '../../../kit/web/components/field.tsx';
import type { ProviderDraft } from './draft.ts';
import styles from './fields.module.css';

interface ProviderFieldsProps {
  provider: ProviderDraft;
  /** What is wrong with a field of this provider. */
  faultOf(field: string): string | undefined;
  onChange(changes: Partial<ProviderDraft>): void;
  /** Absent where it is the only one. */
  onRemove?: (() => void) | undefined;
}

const more = [
  { name: 'provider', label: 'Kind', placeholder: 'from the model', hint: 'openai, anthropic, mistral, groq …' },
  { name: 'api_base', label: 'Address', placeholder: 'the kind’s own', hint: 'With its version path: https://llm.example.com/v1' },
  { name: 'max_tokens', label: 'Most tokens of a test', placeholder: 'none' },
  { name: 'input_cost_per_1m', label: 'Price of input', unit: '$ / 1M', placeholder: 'unknown' },
  { name: 'output_cost_per_1m', label: 'Price of output', unit: '$ / 1M', placeholder: 'unknown' },
] as const;

/** The fields of one provider; those that seldom change are folded away. */
export function ProviderFields({ provider, faultOf, onChange, onRemove }: ProviderFieldsProps) {
  const [open, setOpen] = useState(false);
  const hasFault = more.some(({ name }) => faultOf(name) !== undefined);
  return (
    <>
      <div className={styles.fields}>
        <TextField
          label="Name"
          value={provider.name}
          onChange={(event) => onChange({ name: event.target.value })}
          error={faultOf('name')}
        />
        <TextField
          label="Model"
          placeholder="openai/gpt-4o"
          value={provider.model_id}
          onChange={(event) => onChange({ model_id: event.target.value })}
          error={faultOf('model_id')}
        />
        <TextField
          label="Key variable"
          placeholder="OPENAI_API_KEY"
          value={provider.api_key_env}
          onChange={(event) => onChange({ api_key_env: event.target.value })}
          error={faultOf('api_key_env')}
        />
        <TextField
          label="Timeout"
          unit="ms"
          inputMode="numeric"
          placeholder="30000"
          value={provider.timeout_ms}
          onChange={(event) => onChange({ timeout_ms: event.target.value })}
          error={faultOf('timeout_ms')}
        />
      </div>
      {open || hasFault ? (
        <div className={styles.fields}>
          {more.map(({ name, ...field }) => (
            <TextField
              key={name}
              {...field}
              value={provider[name]}
              onChange={(event) => onChange({ [name]: event.target.value })}
              error={faultOf(name)}
            />
          ))}
        </div>
      ) : null}
      <div className={styles.rowActions}>
        <Button look="quiet" aria-expanded={open || hasFault} onClick={() => setOpen(!open)}>
          {open || hasFault ? 'Fewer fields' : 'More fields'}
        </Button>
        {onRemove === undefined ? null : (
          <Button look="quiet" icon={Trash2} onClick={onRemove}>
            Remove<span className="visually-hidden"> provider {provider.name}</span>
          </Button>
        )}
      </div>
    </>
  );
}
