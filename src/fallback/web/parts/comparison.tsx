import { useMemo } from 'react';

import { Badge } from '../../../kit/web/components/feedback.tsx';
import { Panel } from '../../../kit/web/components/layout.tsx';
import { Table } from '../../../kit/web/components/table.tsx';
import { counted } from '../../../kit/web/format.ts';
import { explains } from '../../model/finding.ts';
import { runsOf } from '../../model/rehearsal.ts';
import type { PromptResult, TestResult } from '../../model/test.ts';
import { mayCause, promptsOf } from '../../rules/causes.ts';
import { unservedAnswer } from '../../rules/conditions.ts';
import styles from './comparison.module.css';
import { labelled } from './labels.ts';

/** The comparison of a rehearsal: the differences as sentences with the findings about them, then each scene in two columns, differing ones first. */
export function RehearsalComparison({ result }: { result: TestResult }) {
  const { agreement, differences = [], findings, results } = result;
  const rows = useMemo(
    () => results.toSorted((one, other) => Number(one.agrees) - Number(other.agrees) || one.index - other.index),
    [results],
  );
  const isMixed = new Set(results.map(({ request }) => request?.stream)).size > 1;
  if (agreement === undefined) return null;
  const { prompts, agreeing, not_tested, sent_again, stray_calls } = agreement;
  const { timeline } = result;
  const what = timeline ? 'prompt' : 'scene';
  return (
    <>
      <Panel title="Differences">
        <p>
          {agreeing} of {counted(prompts, what)} {agreeing === 1 ? 'agrees' : 'agree'}.
          {not_tested === 0 ? '' : ` ${counted(not_tested, what)} tested nothing, because no call failed.`}
          {sent_again === 0 ? '' : ` ${counted(sent_again, what)} agreed only when sent again.`}
          {stray_calls === 0 ? '' : ` ${counted(stray_calls, 'call')} of the fake providers belonged to no ${what}.`}
        </p>
        {differences.length === 0 ? null : (
          <ul className={styles.differences}>
            {differences.map((difference) => (
              <li key={difference.sentence}>
                <p>
                  {labelled(difference.sentence)}{' '}
                  {difference.prompts > 1 ? <span className="muted">({counted(difference.prompts, what)})</span> : null}
                </p>
                {findings
                  .filter((finding) => explains(finding, difference) && mayCause(finding, difference, promptsOf(difference, results)))
                  .map(({ detail }) => (
                    <p key={detail} className="muted">
                      Explained by the export: {labelled(detail)}
                    </p>
                  ))}
              </li>
            ))}
          </ul>
        )}
      </Panel>
      <Panel title={timeline ? 'Prompts' : 'Scenes'} flush>
        <Table<PromptResult>
          label={`${timeline ? 'Prompts' : 'Scenes'}, differing ones first`}
          stacks
          rows={rows}
          keyOf={({ index }) => String(index)}
          columns={[
            {
              name: timeline ? 'Second' : 'Scene',
              cell: ({ index, scenario, request }) => (
                <>
                  {timeline ? Math.floor((index * 60) / timeline.rate_per_minute) : labelled(scenario)}
                  {isMixed && request !== undefined ? <span className="muted"> ({request.stream ? 'streamed' : 'whole'})</span> : null}
                </>
              ),
            },
            {
              name: 'The chain says',
              cell: ({ expected }) => (
                <Calls attempts={expected?.attempts ?? []} served={expected?.served_by ?? null} success={expected?.served_by !== null} />
              ),
            },
            {
              name: 'The gateway did',
              cell: ({ attempts, served_by, success }) => <Calls attempts={attempts} served={served_by} success={success} />,
            },
            {
              name: 'Result',
              cell: ({ agrees, tested }) => {
                if (tested === false) return <Badge tone="warn">not tested</Badge>;
                return agrees ? <Badge tone="good">same</Badge> : <Badge tone="bad">differs</Badge>;
              },
            },
          ]}
        />
      </Panel>
    </>
  );
}

interface CallsProps {
  attempts: readonly Pick<PromptResult['attempts'][number], 'provider' | 'condition'>[];
  served: string | null;
  success: boolean;
}

/** Calls in order, those of one provider in a row together, and how it ended if nobody answered. */
function Calls({ attempts, served, success }: CallsProps) {
  return (
    <span className={styles.calls}>
      {runsOf(attempts).map(({ provider, calls, start }) => (
        <span key={start}>
          {provider}
          {calls > 1 ? <span className="muted"> × {calls}</span> : null}
        </span>
      ))}
      {success ? null : <span className={styles.error}>error</span>}
      {success && served === null ? <span className={styles.error}>{unservedAnswer(attempts.at(-1)?.condition)}</span> : null}
    </span>
  );
}
