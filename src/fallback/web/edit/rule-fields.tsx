import { Trash2 } from 'lucide-react';

import { Button } from '../../../kit/web/components/button.tsx';
import { CheckField, SelectField, TextField } from '../../../kit/web/components/field.tsx';
import { bind, Fields } from '../../../kit/web/components/form.tsx';
import { words } from '../../../kit/web/format.ts';
import { actions, afterRetries, backoffs, retryDefaults, ruleConditions } from '../../model/chain.ts';
import { ruleText } from '../parts/rule-text.ts';
import type { RowProps } from './chain-form.ts';
import { changed, failsOver, type ProviderDraft, type RuleDraft, ruleRequest } from './draft.ts';
import styles from './fields.module.css';

const conditionOptions = ruleConditions.map((value) => ({ value, label: value === 'any' ? 'anything' : words(value) }));

/** The fields of a rule and its description in words. */
export function RuleFields({ row: rule, index, draft: { providers }, onChange, faultOf, onLeave }: RowProps<RuleDraft>) {
  const change = (changes: Partial<RuleDraft>) => onChange((before) => ({ ...before, rules: changed(before.rules, rule.key, changes) }));
  const faultIn = (field: string) => faultOf(`fallback_rules.${index}.${field}`, `${rule.key}.${field}`);
  const bound = bind(rule, change, faultIn, (field) => onLeave(`${rule.key}.${field}`));
  const remove = () => onChange((before) => ({ ...before, rules: before.rules.filter(({ key }) => key !== rule.key) }));
  const toggle = (key: string) =>
    change({ providers: rule.providers.includes(key) ? rule.providers.filter((other) => other !== key) : [...rule.providers, key] });
  return (
    <>
      <p className={styles.preview}>{ruleText(ruleRequest(rule, providers))}</p>
      <Fields min="11rem">
        <SelectField label="When it fails with" options={conditionOptions} {...bound('condition')} />
        <SelectField label="Action" options={actions} {...bound('action')} />
        <TextField label="Only for HTTP statuses" placeholder="all" {...bound('status_codes')} />
      </Fields>
      {rule.action === 'retry' ? <RetryFields rule={rule} bound={bound} onChange={change} /> : null}
      <fieldset className={`${styles.providers} cluster`}>
        <legend>For the providers (none chosen: all)</legend>
        {providers.map(({ key, name }, position) => (
          <CheckField
            key={key}
            label={name.trim() || `provider ${position + 1}`}
            checked={rule.providers.includes(key)}
            onChange={() => toggle(key)}
          />
        ))}
        {faultIn('providers') === undefined ? null : <p className={styles.fault}>{faultIn('providers')}</p>}
      </fieldset>
      {failsOver(rule) ? <ToFields rule={rule} providers={providers} fault={faultIn('to')} onChange={change} /> : null}
      <div className={styles.rowActions}>
        <Button look="quiet" icon={Trash2} onClick={remove}>
          Remove<span className="visually-hidden"> rule {index + 1}</span>
        </Button>
      </div>
    </>
  );
}

interface ToFieldsProps {
  rule: RuleDraft;
  providers: readonly ProviderDraft[];
  fault: string | undefined;
  onChange: (changes: Partial<RuleDraft>) => void;
}

/** The providers of a failover, in the order in which they are chosen. */
function ToFields({ rule: { to }, providers, fault, onChange }: ToFieldsProps) {
  return (
    <fieldset className={`${styles.providers} cluster`}>
      <legend>Fail over to, in the order of choosing (none chosen: the order of the chain)</legend>
      {providers.map(({ key, name }, position) => {
        const chosen = to.indexOf(key);
        const shown = name.trim() || `provider ${position + 1}`;
        return (
          <CheckField
            key={key}
            label={chosen === -1 ? shown : `${chosen + 1}. ${shown}`}
            checked={chosen !== -1}
            onChange={() => onChange({ to: chosen === -1 ? [...to, key] : to.filter((other) => other !== key) })}
          />
        );
      })}
      {fault === undefined ? null : <p className={styles.fault}>{fault}</p>}
    </fieldset>
  );
}

interface RetryFieldsProps {
  rule: RuleDraft;
  bound: ReturnType<typeof bind<RuleDraft>>;
  onChange: (changes: Partial<RuleDraft>) => void;
}

function RetryFields({ rule, bound, onChange }: RetryFieldsProps) {
  const number = { inputMode: 'numeric' } as const;
  return (
    <>
      <Fields min="11rem">
        <TextField label="Extra attempts" {...number} placeholder={String(retryDefaults.max_retries)} {...bound('max_retries')} />
        <TextField label="First wait" unit="ms" {...number} placeholder={String(retryDefaults.wait_ms)} {...bound('wait_ms')} />
        <SelectField label="Later waits" options={backoffs} {...bound('backoff')} />
        <TextField label="Longest wait" unit="ms" {...number} placeholder={String(retryDefaults.max_wait_ms)} {...bound('max_wait_ms')} />
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
