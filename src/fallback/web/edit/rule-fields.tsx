import { Trash2 } from 'lucide-react';

import { Button } from '../../../kit/web/components/button.tsx';
import { CheckField, SelectField, TextField } from '../../../kit/web/components/field.tsx';
import { words } from '../../../kit/web/format.ts';
import { actions, afterRetries, backoffs, ruleConditions } from '../../model/chain.ts';
import { type RuleLike, ruleText } from '../parts/rule-text.ts';
import { type RuleDraft, ruleRequest } from './draft.ts';
import styles from './fields.module.css';

interface RuleFieldsProps {
  rule: RuleDraft;
  /** The names of the chain's providers. */
  providers: readonly string[];
  faultOf(field: string): string | undefined;
  onChange(changes: Partial<RuleDraft>): void;
  onRemove(): void;
}

/** The fields of one rule, and what it does in plain words. */
export function RuleFields({ rule, providers, faultOf, onChange, onRemove }: RuleFieldsProps) {
  const toggle = (name: string) =>
    onChange({ providers: rule.providers.includes(name) ? rule.providers.filter((other) => other !== name) : [...rule.providers, name] });
  return (
    <>
      <p className={styles.preview}>{ruleText(ruleRequest(rule) as RuleLike)}</p>
      <div className={styles.fields}>
        <SelectField
          label="When it fails with"
          options={ruleConditions.map((value) => ({ value, label: value === 'any' ? 'anything' : words(value) }))}
          value={rule.condition}
          onChange={(event) => onChange({ condition: event.target.value })}
          error={faultOf('condition')}
        />
        <SelectField
          label="Do"
          options={[...actions]}
          value={rule.action}
          onChange={(event) => onChange({ action: event.target.value })}
          error={faultOf('action')}
        />
        <TextField
          label="Only for HTTP statuses"
          placeholder="all"
          value={rule.status_codes}
          onChange={(event) => onChange({ status_codes: event.target.value })}
          error={faultOf('status_codes')}
        />
      </div>
      {rule.action === 'retry' ? <RetryFields rule={rule} faultOf={faultOf} onChange={onChange} /> : null}
      <fieldset className={styles.providers}>
        <legend>For the providers (none chosen: all)</legend>
        {providers.filter(Boolean).map((name) => (
          <CheckField key={name} label={name} checked={rule.providers.includes(name)} onChange={() => toggle(name)} />
        ))}
        {faultOf('providers') === undefined ? null : <p className={styles.fault}>{faultOf('providers')}</p>}
      </fieldset>
      <div className={styles.rowActions}>
        <Button look="quiet" icon={Trash2} onClick={onRemove}>
          Remove<span className="visually-hidden"> this rule</span>
        </Button>
      </div>
    </>
  );
}

function RetryFields({ rule, faultOf, onChange }: Pick<RuleFieldsProps, 'rule' | 'faultOf' | 'onChange'>) {
  return (
    <>
      <div className={styles.fields}>
        <TextField
          label="Extra attempts"
          inputMode="numeric"
          placeholder="1"
          value={rule.max_retries}
          onChange={(event) => onChange({ max_retries: event.target.value })}
          error={faultOf('max_retries')}
        />
        <TextField
          label="First wait"
          unit="ms"
          inputMode="numeric"
          placeholder="500"
          value={rule.wait_ms}
          onChange={(event) => onChange({ wait_ms: event.target.value })}
          error={faultOf('wait_ms')}
        />
        <SelectField
          label="Later waits"
          options={[...backoffs]}
          value={rule.backoff}
          onChange={(event) => onChange({ backoff: event.target.value })}
        />
        <TextField
          label="Longest wait"
          unit="ms"
          inputMode="numeric"
          placeholder="10000"
          value={rule.max_wait_ms}
          onChange={(event) => onChange({ max_wait_ms: event.target.value })}
          error={faultOf('max_wait_ms')}
        />
        <SelectField
          label="Then"
          options={[...afterRetries]}
          value={rule.after}
          onChange={(event) => onChange({ after: event.target.value })}
        />
      </div>
      <CheckField
        label="Obey Retry-After, up to the longest wait"
        checked={rule.respect_retry_after}
        onChange={(event) => onChange({ respect_retry_after: event.target.checked })}
      />
    </>
  );
}
