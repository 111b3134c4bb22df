import { Trash2 } from 'lucide-react';
import { useState } from 'react';

import { Button } from '../../../kit/web/components/button.tsx';
import { TextArea, TextField } from '../../../kit/web/components/field.tsx';
import { bind, Fields } from '../../../kit/web/components/form.tsx';
import { apiBase, kindOfModel } from '../../rules/kinds.ts';
import type { ProviderDraft } from './draft.ts';
import styles from './fields.module.css';

interface ProviderFieldsProps {
  /** How the provider is called: by its name, or by its position while it has none. */
  label: string;
  provider: ProviderDraft;
  faultOf(field: string): string | undefined;
  onLeave(field: string): void;
  onChange(changes: Partial<ProviderDraft>): void;
  /** Absent for the only provider. */
  onRemove?: (() => void) | undefined;
}

const usual = [
  { name: 'name', label: 'Name' },
  { name: 'model_id', label: 'Model', placeholder: 'openai/gpt-4o' },
  { name: 'api_key_env', label: 'Key variable', placeholder: 'OPENAI_API_KEY' },
  { name: 'timeout_ms', label: 'Timeout', unit: 'ms', inputMode: 'numeric', placeholder: '30000' },
] as const;

const seldom = [
  { name: 'provider', label: 'Kind', placeholder: 'from the model', hint: 'openai, anthropic, mistral, groq …' },
  { name: 'api_base', label: 'Address', hint: 'With its version path: https://llm.example.com/v1' },
  { name: 'max_tokens', label: 'Maximum tokens in tests', placeholder: 'none' },
  { name: 'input_cost_per_1m', label: 'Price of input', unit: '$ / 1M', placeholder: 'unknown' },
  { name: 'output_cost_per_1m', label: 'Price of output', unit: '$ / 1M', placeholder: 'unknown' },
] as const;

/** The address that is called without one of its own. */
const usualAddress = ({ provider, model_id }: ProviderDraft): string =>
  apiBase({ provider: provider.trim() === '' ? kindOfModel(model_id.trim()) : provider.trim(), model_id, api_base: null }) ?? 'none known';

/** The fields of a provider; rarely used ones are collapsed. */
export function ProviderFields({ label, provider, faultOf, onLeave, onChange, onRemove }: ProviderFieldsProps) {
  const [opened, setOpened] = useState(false);
  const open = opened || [...seldom, { name: 'params' }].some(({ name }) => faultOf(name) !== undefined);
  const bound = bind(provider, onChange, faultOf, onLeave);
  return (
    <>
      {(open ? [usual, seldom] : [usual]).map((fields, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the rows never move.
        <Fields key={row} min="11rem">
          {fields.map(({ name, ...field }) => (
            <TextField key={name} {...field} {...(name === 'api_base' ? { placeholder: usualAddress(provider) } : {})} {...bound(name)} />
          ))}
        </Fields>
      ))}
      {open ? (
        <TextArea
          label="Parameters"
          code
          rows={3}
          placeholder={'{"api_version": "2024-10-21"}'}
          hint="What the kind needs in exports, as JSON with LiteLLM’s names. A secret only as os.environ/NAME."
          {...bound('params')}
        />
      ) : null}
      <div className={styles.rowActions}>
        <Button look="quiet" aria-expanded={open} onClick={() => setOpened(!opened)}>
          {open ? 'Fewer fields' : 'More fields'}
          <span className="visually-hidden"> of {label}</span>
        </Button>
        {onRemove === undefined ? null : (
          <Button look="quiet" icon={Trash2} onClick={onRemove}>
            Remove<span className="visually-hidden"> {label}</span>
          </Button>
        )}
      </div>
    </>
  );
}
