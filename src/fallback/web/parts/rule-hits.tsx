import { Badge } from '../../../kit/web/components/feedback.tsx';
import { Panel } from '../../../kit/web/components/layout.tsx';
import { counted, words } from '../../../kit/web/format.ts';
import type { TestResult } from '../../model/test.ts';
import { Action } from './action-cell.tsx';
import styles from './rule-hits.module.css';

/** The number of failures that each rule decided, and the rules that decided none. */
export function RuleHits({ result }: { result: TestResult }) {
  return (
    <Panel title="Rules">
      {result.rules.length === 0 ? (
        <p className="muted">The chain has no rules.</p>
      ) : (
        <ol className={styles.rules}>
          {result.rules.map(({ condition, action, hits, never_hit }, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a rule is identified by its index.
            <li key={index}>
              <span>
                <span className="muted tabular">{index + 1}</span> {words(condition)} <Action action={action} />
              </span>
              {never_hit ? <Badge tone="warn">never hit</Badge> : <span className="tabular">{counted(hits, 'hit')}</span>}
            </li>
          ))}
        </ol>
      )}
    </Panel>
  );
}
