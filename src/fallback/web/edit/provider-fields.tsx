import { Trash2 } from 'lucide-react';
import { useState } from 'react';

import { Button } from '../../../kit/web/components/button.tsx';
import { TextArea, TextField } from '../../../kit/web/components/field.tsx';
import { bind, Fields } from '../../../kit/web/components/form.tsx';
import { toast } from '../../../kit/web/components/toasts.tsx';
import { providerDefaults } from '../../model/chain.ts';
import { apiBase, kindOfModel, usualKey } from '../../rules/kinds.ts';
import type { RowProps } from './chain-form.ts';
import { CooldownFields } from './cooldown-fields.tsx';
import { changed, type ProviderDraft, removalNotes, withoutProvider } from './draft.ts';
import styles from './fields.module.css';

/** How a provider is called: by its name, or by its position while it has none. */
export const nameOf = ({ name }: ProviderDraft, index: number) => `provider ${name === '' ? index + 1 : name}`;

const usual = [
  { name: 'name', label: 'Name' },
  { name: 'model_id', label: 'Model', placeholder: 'openai/gpt-4o' },
  { name: 'api_key_env', label: 'Key variable' },
  { name: 'timeout_ms', label: 'Timeout', unit: 'ms', inputMode: 'numeric', placeholder: String(providerDefaults.timeout_ms) },
] as const;

const seldom = [
  { name: 'provider', label: 'Kind', placeholder: 'from the model', hint: 'openai, anthropic, mistral, groq …' },
  { name: 'api_base', label: 'Address', hint: 'With its version path: https://llm.example.com/v1' },
  { name: 'first_token_ms', label: 'First content of a stream', unit: 'ms', inputMode: 'numeric', placeholder: 'no limit' },
  { name: 'idle_ms', label: 'Longest pause of a stream', unit: 'ms', inputMode: 'numeric', placeholder: 'no limit' },
  { name: 'max_tokens', label: 'Maximum tokens in tests', placeholder: 'none' },
  { name: 'input_cost_per_1m', label: 'Price of input', unit: '$ / 1M', placeholder: 'unknown' },
  { name: 'output_cost_per_1m', label: 'Price of output', unit: '$ / 1M', placeholder: 'unknown' },
] as const;

/** The placeholders that depend on the provider: what the service uses for an empty field. */
function placeholdersOf({ provider, model_id, api_base }: ProviderDraft): Record<string, { placeholder: string }> {
  const kind = provider.trim() === '' ? kindOfModel(model_id.trim()) : provider.trim();
  return {
    api_base: { placeholder: apiBase({ provider: kind, model_id, api_base: null }) ?? 'none known' },
    api_key_env: { placeholder: usualKey(kind, api_base.trim() === '' ? null : api_base) ?? 'none' },
  };
}

/** The fields of a provider; rarely used ones are collapsed. */
export function ProviderFields({ row: provider, index, draft, onChange, faultOf, onLeave }: RowProps<ProviderDraft>) {
  const { key } = provider;
  const label = nameOf(provider, index);
  const change = (changes: Partial<ProviderDraft>) =>
    onChange((before) => ({ ...before, providers: changed(before.providers, key, changes) }));
  const faultIn = (field: string) => faultOf(`providers.${index}.${field}`, `${key}.${field}`);
  const bound = bind(provider, change, faultIn, (field) => onLeave(`${key}.${field}`));
  const placeholders = placeholdersOf(provider);
  const [opened, setOpened] = useState(false);
  const open = opened || [...seldom, { name: 'params' }, { name: 'cooldown' }].some(({ name }) => faultIn(name) !== undefined);
  function remove(): void {
    const notes = removalNotes(draft, key);
    if (notes.length > 0) toast({ text: notes.join(' '), tone: 'warn' });
    onChange((before) => withoutProvider(before, key));
  }
  return (
    <>
      {(open ? [usual, seldom] : [usual]).map((fields, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the rows never move.
        <Fields key={row} min="11rem">
          {fields.map(({ name, ...field }) => (
            <TextField key={name} {...field} {...placeholders[name]} {...bound(name)} />
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
      {open ? (
        <CooldownFields
          cooldown={provider.cooldown}
          title="Its own cool-down (empty: the chain’s)"
          onChange={(changes) => change({ cooldown: { ...provider.cooldown, ...changes } })}
          faultIn={(field) => faultIn(`cooldown.${field}`)}
          onLeave={(field) => onLeave(`${key}.cooldown.${field}`)}
        />
      ) : null}
      <div className={styles.rowActions}>
        <Button look="quiet" aria-expanded={open} onClick={() => setOpened(!opened)}>
          {open ? 'Fewer fields' : 'More fields'}
          <span className="visually-hidden"> of {label}</span>
        </Button>
        {draft.providers.length === 1 ? null : (
          <Button look="quiet" icon={Trash2} onClick={remove}>
            Remove<span className="visually-hidden"> {label}</span>
          </Button>
        )}
      </div>
    </>
  );
}
