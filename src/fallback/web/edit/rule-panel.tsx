import { Plus } from 'lucide-react';

import { Button } from '../../../kit/web/components/button.tsx';
import { Panel } from '../../../kit/web/components/layout.tsx';
import { changed, emptyRule, moved } from './draft.ts';
import type { PartProps } from './provider-panel.tsx';
import { RuleFields } from './rule-fields.tsx';
import { Sortable } from './sortable.tsx';

const nameOf = (index: number) => `rule ${index + 1}`;

/** The rules of a chain, in order. */
export function RulePanel({ draft: { providers, rules }, onChange, faultOf, onLeave }: PartProps) {
  const remove = (key: string) => onChange((before) => ({ ...before, rules: before.rules.filter((rule) => rule.key !== key) }));
  return (
    <Panel
      title="Rules"
      actions={
        <Button icon={Plus} onClick={() => onChange((before) => ({ ...before, rules: [...before.rules, emptyRule()] }))}>
          Add a rule
        </Button>
      }
    >
      <p className="muted">
        A rule with status codes decides before one without, and a rule for its condition before one for any failure. Among equals, the
        first one decides.
      </p>
      <Sortable
        items={rules}
        nameOf={(_, index) => nameOf(index)}
        onMove={(from, to) => onChange((before) => ({ ...before, rules: moved(before.rules, from, to) }))}
        empty={
          <p className="muted">
            Without rules every failure goes to the next provider, except invalid requests and content filters, which are returned to the
            caller.
          </p>
        }
      >
        {(rule, index) => (
          <RuleFields
            label={nameOf(index)}
            rule={rule}
            providers={providers}
            faultOf={(field) => faultOf(`fallback_rules.${index}.${field}`, `${rule.key}.${field}`)}
            onLeave={(field) => onLeave(`${rule.key}.${field}`)}
            onChange={(changes) => onChange((before) => ({ ...before, rules: changed(before.rules, rule.key, changes) }))}
            onRemove={() => remove(rule.key)}
          />
        )}
      </Sortable>
    </Panel>
  );
}
