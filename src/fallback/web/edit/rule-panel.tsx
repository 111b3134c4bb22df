import { Plus } from 'lucide-react';

import { Button } from '../../../kit/web/components/button.tsx';
import { Panel } from '../../../kit/web/components/layout.tsx';
import { withoutRules } from '../parts/rule-text.ts';
import type { PartProps } from './chain-form.ts';
import { emptyRule, moved } from './draft.ts';
import { RuleFields } from './rule-fields.tsx';
import { Sortable } from './sortable.tsx';

/** The rules of a chain, in order. */
export function RulePanel(part: PartProps) {
  const { draft, onChange } = part;
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
        items={draft.rules}
        nameOf={(_, index) => `rule ${index + 1}`}
        onMove={(from, to) => onChange((before) => ({ ...before, rules: moved(before.rules, from, to) }))}
        empty={<p className="muted">{withoutRules}</p>}
      >
        {(rule, index) => <RuleFields {...part} row={rule} index={index} />}
      </Sortable>
    </Panel>
  );
}
