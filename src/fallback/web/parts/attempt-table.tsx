import { Badge } from '../../../kit/web/components/feedback.tsx';
import { Notes } from '../../../kit/web/components/notes.tsx';
import { Table } from '../../../kit/web/components/table.tsx';
import { counted, durationText, words } from '../../../kit/web/format.ts';
import { concerns, type Finding } from '../../model/finding.ts';
import type { PromptResult } from '../../model/test.ts';
import { Action } from './action-cell.tsx';
import styles from './attempt-table.module.css';
import { findingNotes } from './finding-notes.ts';

/** The attempts of a prompt, in order. */
export function AttemptTable({ prompt, findings }: { prompt: PromptResult; findings: readonly Finding[] }) {
  const concerned = findings.filter((finding) => prompt.attempts.some((attempt) => concerns(finding, attempt)));
  const { attempts_omitted = 0 } = prompt;
  return (
    <div className={styles.frame}>
      <Table
        stacks
        label={`Attempts of prompt ${prompt.index + 1}`}
        rows={prompt.attempts.map((attempt, index) => ({ ...attempt, index }))}
        keyOf={({ index }) => String(index)}
        columns={[
          { name: 'Provider', cell: ({ provider, model_id }) => <span title={model_id}>{provider}</span> },
          { name: 'Began', number: true, cell: ({ start_ms }) => durationText(start_ms) },
          { name: 'Took', number: true, cell: ({ latency_ms }) => durationText(latency_ms) },
          { name: 'Status', number: true, cell: ({ status_code }) => status_code ?? '–' },
          {
            name: 'Outcome',
            cell: ({ condition, error, injected }) => (
              <>
                {condition === null ? 'answered' : words(condition)} {injected ? <Badge>injected</Badge> : null}
                {/* Of an injected failure the badge says as much. */}
                {error === null || error === 'injected' ? null : <span className="muted"> {error}</span>}
              </>
            ),
          },
          {
            name: 'Then',
            cell: ({ action, rule }) =>
              action === null ? (
                '–'
              ) : (
                <>
                  <Action action={action} /> <span className="muted">{rule === null ? 'by default' : `by rule ${rule + 1}`}</span>
                </>
              ),
          },
          { name: 'Waited', number: true, cell: ({ wait_ms }) => (wait_ms === 0 ? '–' : durationText(wait_ms)) },
        ]}
      />
      <Notes tone="warn" title="The imported file behaves otherwise." notes={findingNotes(concerned)} />
      {attempts_omitted === 0 ? null : <p className="muted">{counted(attempts_omitted, 'further attempt')} without details.</p>}
    </div>
  );
}
