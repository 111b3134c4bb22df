import { Trash2 } from 'lucide-react';

import { Button } from '../../../kit/web/components/button.tsx';
import { CheckField, SelectField, TextField } from '../../../kit/web/components/field.tsx';
import { bind, Fields } from '../../../kit/web/components/form.tsx';
import { words } from '../../../kit/web/format.ts';
import { actions, afterRetries, backoffs, ruleConditions } from '../../model/chain.ts';
import { ruleText } from '../parts/rule-text.ts';
import { type ProviderDraft, type RuleDraft, ruleRequest } from './draft.ts';
import styles from './fields.module.css';

interface RuleFieldsProps {
  /** How the rule is called: `rule 1`. */
  label: string;
  rule: RuleDraft;
  providers: readonly ProviderDraft[];
  faultOf(field: string): string | undefined;
  onLeave(field: string): void;
  onChange(changes: Partial<RuleDraft>): void;
  onRemove(): void;
}

const conditionOptions = ruleConditions.map((value) => ({ value, label: value === 'any' ? 'anything' : words(value) }));

/** The fields of a rule and its description in words. */
export function RuleFields({ label, rule, providers, faultOf, onLeave, onChange, onRemove }: RuleFieldsProps) {
  const bound = bind(rule, onChange, faultOf, onLeave);
  const toggle = (key: string) =>
    onChange({ providers: rule.providers.includes(key) ? rule.providers.filter((other) => other !== key) : [...rule.providers, key] });
  return (
    <>
      <p className={styles.preview}>{ruleText(ruleRequest(rule, providers))}</p>
      <Fields min="11rem">
        <SelectField label="When it fails with" options={conditionOptions} {...bound('condition')} />
        <SelectField label="Do" options={actions} {...bound('action')} />
        <TextField label="Only for HTTP statuses" placeholder="all" {...bound('status_codes')} />
      </Fields>
      {rule.action === 'retry' ? <RetryFields rule={rule} faultOf={faultOf} onLeave={onLeave} onChange={onChange} /> : null}
      <fieldset className={`${styles.providers} cluster`}>
        <legend>For the providers (none chosen: all)</legend>
        {providers.map(({ key, name }, index) => (
          <CheckField
            key={key}
            label={name.trim() || `provider ${index + 1}`}
            checked={rule.providers.includes(key)}
            onChange={() => toggle(key)}
          />
        ))}
        {faultOf('providers') === undefined ? null : <p className={styles.fault}>{faultOf('providers')}</p>}
      </fieldset>
      <div className={styles.rowActions}>
        <Button look="quiet" icon={Trash2} onClick={onRemove}>
          Remove<span className="visually-hidden"> {label}</span>
        </Button>
      </div>
    </>
  );
}

function RetryFields({ rule, faultOf, onLeave, onChange }: Pick<RuleFieldsProps, 'rule' | 'faultOf' | 'onLeave' | 'onChange'>) {
  const bound = bind(rule, onChange, faultOf, onLeave);
  const number = { inputMode: 'numeric' } as const;
  return (
    <>
      <Fields min="11rem">
        <TextField label="Extra attempts" {...number} placeholder="1" {...bound('max_retries')} />
        <TextField label="First wait" unit="ms" {...number} placeholder="500" {...bound('wait_ms')} />
        <SelectField label="Later waits" options={backoffs} {...bound('backoff')} />
        <TextField label="Longest wait" unit="ms" {...number} placeholder="10000" {...bound('max_wait_ms')} />
        <SelectField label="Then" options={afterRetries} {...bound('after')} />
      </Fields>
      <CheckField
        label="Obey Retry-After, up to the longest wait"
        checked={rule.respect_retry_after}
        onChange={(event) => onChange({ respect_retry_after: event.target.checked })}
      />
    </>
  );
}
