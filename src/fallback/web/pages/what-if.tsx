import { ArrowDown } from 'lucide-react';
import { Fragment, type KeyboardEvent, useId } from 'react';
import { useSearchParams } from 'react-router';
import { Load } from '../../../kit/web/app/load.tsx';
import { Badge } from '../../../kit/web/components/feedback.tsx';
import { Panel, ScrollX, Stats } from '../../../kit/web/components/layout.tsx';
import { Notes } from '../../../kit/web/components/notes.tsx';
import { counted, duration, durationText, words } from '../../../kit/web/format.ts';
import { type Condition, conditions } from '../../model/chain.ts';
import type { Decision, Routing } from '../../model/routing.ts';
import { useRouting } from '../data/queries.ts';
import { Action } from '../parts/action-cell.tsx';
import { findingNotes } from '../parts/finding-notes.ts';
import { labelledNotes } from '../parts/labels.ts';
import { useCurrentChain } from './chain.tsx';
import styles from './what-if.module.css';

/** The page with the routing table and the path of a prompt for one failure. */
export function WhatIf() {
  const chain = useCurrentChain();
  const routing = useRouting(chain);
  const [params, setParams] = useSearchParams();
  const provider = chain.providers.find(({ name }) => name === params.get('provider'))?.name;
  const condition = conditions.find((name) => name === params.get('condition'));
  const asked = provider === undefined || condition === undefined ? undefined : { provider, condition };
  const answer = useRouting(chain, asked, asked !== undefined);

  return (
    <Load query={routing} what="The routing table">
      {(table) => (
        <>
          <Panel title="Worst case">
            <WorstCase routing={table} />
          </Panel>
          <div className={styles.columns}>
            <Panel title="Pick a provider and a failure" flush>
              <Grid
                routing={table}
                asked={asked}
                onAsk={(question) => setParams({ ...question }, { replace: true, preventScrollReset: true })}
              />
            </Panel>
            <Panel title="What happens">
              <div aria-live="polite" className="stack">
                {asked ? (
                  // Until the first question is answered, the data is the routing table, which has no path.
                  <Load query={{ ...answer, data: answer.data?.path ? answer.data : undefined }} what="The path" lines={3} height="3rem">
                    {(found) => <Path routing={found} />}
                  </Load>
                ) : (
                  <p className="muted">Choose a cell of the table: a provider and the way in which it fails. Nothing is called.</p>
                )}
              </div>
            </Panel>
          </div>
        </>
      )}
    </Load>
  );
}

function WorstCase({ routing: { worst_case, warnings } }: { routing: Routing }) {
  const { attempts, latency_ms, first_token_ms } = worst_case;
  return (
    <>
      <Stats
        min="11rem"
        items={[
          { label: 'Longest prompt', ...duration(latency_ms), note: 'timeouts and waits included' },
          ...(first_token_ms < latency_ms
            ? [{ label: 'First content', ...duration(first_token_ms), note: 'of a stream, at the latest' }]
            : []),
          { label: 'Most calls', value: attempts, unit: attempts === 1 ? 'attempt' : 'attempts', note: 'for one prompt' },
        ]}
      />
      <Notes tone="warn" notes={labelledNotes(warnings)} />
    </>
  );
}

function cellText({ action, max_retries, next_provider }: Decision): string {
  if (action === 'retry') return `retry ${max_retries}×`;
  if (action === 'failover') return next_provider === null ? 'last: error' : 'failover';
  return 'fail';
}

function sentence({ action, max_retries, next_provider, source }: Decision): string {
  const after = next_provider === null ? 'the error goes to the caller' : `${next_provider} is tried`;
  const what =
    action === 'retry'
      ? `${counted(max_retries, 'retry', 'retries')}, then ${after}`
      : action === 'fail'
        ? 'the error goes to the caller'
        : after;
  return `${what} (${source === 'rule' ? 'a rule says so' : 'by default'})`;
}

interface Question {
  provider: string;
  condition: Condition;
}

interface GridProps {
  routing: Routing;
  asked: Question | undefined;
  onAsk: (question: Question) => void;
}

/** Moves the focus to the neighbouring cell in the direction of an arrow key. */
function moveFocus(event: KeyboardEvent<HTMLTableElement>): void {
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  const table = event.currentTarget;
  const cell = event.target instanceof Element ? event.target.closest('td') : null;
  const row = cell?.closest('tr');
  if (step === undefined || !cell || !row) return;
  const button = table.tBodies[0]?.rows[row.sectionRowIndex + step[0]!]?.cells[cell.cellIndex + step[1]!]?.querySelector('button');
  if (!button) return;
  event.preventDefault();
  button.focus();
}

/** A table of providers and conditions. Each cell is a button that selects its failure; arrow keys move between cells. */
function Grid({ routing, asked, onAsk }: GridProps) {
  const legend = useId();
  return (
    <>
      <ScrollX label="Routing table">
        <table className={styles.grid} onKeyDown={moveFocus} aria-describedby={legend}>
          <thead>
            <tr>
              <th scope="col">When it fails with</th>
              {routing.order.map((name) => (
                <th key={name} scope="col" title={name}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {conditions.map((condition, index) => (
              <tr key={condition}>
                <th scope="row">{words(condition)}</th>
                {routing.providers.map(({ name, decisions }) => {
                  const decision = decisions[index]!;
                  const pressed = asked?.provider === name && asked.condition === condition;
                  return (
                    <td key={name}>
                      <button
                        type="button"
                        aria-pressed={pressed}
                        title={sentence(decision)}
                        className={styles.cell}
                        data-source={decision.source}
                        onClick={() => onAsk({ provider: name, condition })}
                      >
                        <Action action={decision.action} text={cellText(decision)} />
                        {decision.exceptions.length === 0 ? null : <sup>{decision.exceptions.length}</sup>}
                        {decision.findings.length === 0 ? null : <sup aria-hidden="true">!</sup>}
                        <span className="visually-hidden">
                          : {name} fails with {words(condition)}, {sentence(decision)}
                          {decision.findings.length === 0 ? '' : '; the imported file differs'}
                        </span>
                      </button>
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollX>
      <p id={legend} className={styles.legend}>
        Solid cells: a rule decides. Dashed cells: the default. A small number: some HTTP statuses of the condition are treated differently.
        An exclamation mark: the imported file behaves otherwise.
      </p>
    </>
  );
}

/** The steps from the failing provider to the end, from top to bottom. */
function Path({ routing }: { routing: Routing }) {
  const { question, path } = routing;
  if (question === null || path === null) return null;
  const asked = routing.providers.find(({ name }) => name === question.provider);
  const findings = asked?.decisions.find(({ condition }) => condition === question.condition)?.findings ?? [];
  return (
    <>
      <p>
        <strong>{question.provider}</strong> fails with {words(question.condition)} every time; the others answer.{' '}
        {question.served_by === null ? <Badge tone="bad">The prompt fails</Badge> : <Badge tone="good">{question.served_by} answers</Badge>}
      </p>
      <Notes tone="warn" title="The imported file behaves otherwise." notes={findingNotes(findings)} />
      <ol className={styles.path}>
        {path.map(({ provider, attempt, condition, action, wait_ms, source, rule }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a step is identified by its index.
          <Fragment key={index}>
            <li className={styles.step} data-action={action}>
              <span className={styles.stepHead}>
                <strong>{provider}</strong>
                <span className="muted">attempt {attempt}</span>
              </span>
              <span>
                {condition === null ? 'answers' : `fails with ${words(condition)}`}
                {condition === null ? null : (
                  <>
                    {': '}
                    <Action action={action} />
                    <span className="muted"> {source === 'rule' ? `by rule ${(rule ?? 0) + 1}` : 'by default'}</span>
                  </>
                )}
              </span>
            </li>
            {index === path.length - 1 ? null : (
              <li className={styles.wait}>
                <ArrowDown size={14} aria-hidden="true" />
                {wait_ms === 0 ? 'at once' : `after up to ${durationText(wait_ms)}`}
              </li>
            )}
          </Fragment>
        ))}
      </ol>
    </>
  );
}
