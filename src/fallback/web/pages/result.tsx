import { GitCompare, Square } from 'lucide-react';
import { useEffect, useMemo, useState } from 'react';
import { Link } from 'react-router';
import { byId } from '../../../kit/web/app/by-id.tsx';
import { Load } from '../../../kit/web/app/load.tsx';
import { useTitle } from '../../../kit/web/app/title.ts';
import { Button, LinkButton } from '../../../kit/web/components/button.tsx';
import { Badge, Callout } from '../../../kit/web/components/feedback.tsx';
import { Columns, PageHeader, Panel, Stats } from '../../../kit/web/components/layout.tsx';
import { toast } from '../../../kit/web/components/toasts.tsx';
import { count, counted, dollars, duration, durationText, moment, percent, words } from '../../../kit/web/format.ts';
import type { TestProgress, TestResult } from '../../model/test.ts';
import { useFollowedResult } from '../data/progress.ts';
import { useCancelTest, useMayWrite } from '../data/queries.ts';
import { Action } from '../parts/action-cell.tsx';
import { RehearsalComparison } from '../parts/comparison.tsx';
import { labelled } from '../parts/labels.ts';
import { planName } from '../parts/plan-name.ts';
import { PromptList } from '../parts/prompt-list.tsx';
import { ResultCharts } from '../parts/result-charts.tsx';
import { ScenarioGrid } from '../parts/scenario-grid.tsx';
import { TimelineChart } from '../parts/timeline-chart.tsx';
import { Verdict, verdictMeanings } from '../parts/verdict.tsx';
import styles from './result.module.css';

/** The titles of an error by the status of the test; a rehearsal completes with one if its gateway can't be used. */
const errorTitles = {
  running: undefined,
  completed: 'The gateway can’t be used.',
  failed: 'The test failed.',
  cancelled: 'The test was cancelled.',
};

/** The page of a test: its progress while it runs, then its result. */
export const ResultPage = byId(function ResultById({ id }) {
  const { result, progress } = useFollowedResult(id);
  useTitle(result.data === undefined ? undefined : `Test of ${result.data.chain_name}`);
  return (
    <Load query={result} what="The result" lines={8}>
      {(found) => (
        <>
          <PageHeader
            title={
              <>
                Test of {found.chain_name} <Verdict verdict={found.verdict} status={found.status} />
              </>
            }
            subtitle={<Subtitle result={found} />}
            actions={
              <>
                <LinkButton to={`/chains/${found.chain_id}/tests`}>Chain’s tests</LinkButton>
                <LinkButton to={`/compare?a=${found.id}`} icon={GitCompare}>
                  Compare
                </LinkButton>
              </>
            }
          />
          {found.status === 'running' ? <Running result={found} streamed={progress} /> : null}
          {found.error === null ? null : (
            <Callout tone={found.status === 'cancelled' ? 'info' : 'bad'} title={errorTitles[found.status]}>
              {labelled(found.error)}
            </Callout>
          )}
          <TimelineChart result={found} />
          {found.results.length === 0 ? null : <RehearsalComparison result={found} />}
          {found.status === 'running' && found.progress.done === 0 ? null : <Figures result={found} />}
          {found.results.length === 0 ? null : <Details result={found} />}
        </>
      )}
    </Load>
  );
});

function Subtitle({ result }: { result: TestResult }) {
  const { mode, seed, chain_id, chain_version, started_at, duration_ms } = result;
  return (
    <>
      <Badge tone={mode === 'simulate' ? 'neutral' : 'info'}>{mode === 'simulate' ? 'simulated' : mode}</Badge> {planName(result)}, seed{' '}
      <code>{seed}</code>, version {chain_version} of <Link to={`/chains/${chain_id}`}>the chain</Link>, {moment(started_at)}
      {duration_ms === null ? '' : `, ran ${durationText(duration_ms)}`}
    </>
  );
}

/** After how many milliseconds without a finished prompt the page says so. */
const quietMs = 15_000;

/** Says that no prompt has ended for a while. It is mounted anew when one ends. */
function Quiet() {
  const [isQuiet, setQuiet] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setQuiet(true), quietMs);
    return () => clearTimeout(timer);
  }, []);
  return (
    <p className="muted" role="status">
      {isQuiet
        ? `No prompt ended in the last ${durationText(quietMs)}. Calls may be slow, or the test waits for its turn. If the instance that runs it has died, the test is cancelled within a minute and keeps the prompts that have ended.`
        : ''}
    </p>
  );
}

/** The progress of a test: that of the stream or of the last result, whichever is further. */
function Running({ result, streamed }: { result: TestResult; streamed: TestProgress | undefined }) {
  const cancel = useCancelTest({ onError: ({ message }) => toast({ text: `The test was not cancelled: ${message}`, tone: 'bad' }) });
  const mayWrite = useMayWrite();
  const { progress, success_count, failure_count } =
    streamed !== undefined && streamed.progress.done >= result.progress.done ? streamed : result;
  return (
    <Panel>
      <div className={styles.running}>
        <label className={`${styles.progress} tabular`}>
          <span>
            {count(progress.done)} of {counted(progress.total, 'prompt')} done
            <span className="muted">
              {' '}
              · {count(success_count)} served, {count(failure_count)} lost
            </span>
          </span>
          <progress value={progress.done} max={progress.total} />
        </label>
        {mayWrite ? (
          <Button icon={Square} busy={cancel.isPending} onClick={() => cancel.mutate(result.id)}>
            Cancel
          </Button>
        ) : null}
      </div>
      <Quiet key={progress.done} />
    </Panel>
  );
}

function Figures({ result }: { result: TestResult }) {
  return (
    <Panel title="Result">
      {result.verdict === null ? null : <p className={styles.meaning}>{verdictMeanings[result.verdict]}</p>}
      <Stats
        items={[
          {
            label: 'Served',
            value: percent(result.success_rate),
            note: `${count(result.success_count)} of ${counted(result.progress.done, 'prompt')}`,
          },
          { label: 'Served by fallback', value: percent(result.fallback_rate), note: counted(result.fallback_count, 'prompt') },
          { label: 'Lost', value: count(result.failure_count), unit: result.failure_count === 1 ? 'prompt' : 'prompts' },
          { label: 'Latency p95', ...duration(result.latency_ms?.p95), note: `median ${durationText(result.latency_ms?.p50)}` },
          { label: 'Added by failures', ...duration(result.added_latency_ms), note: 'mean time before the serving attempt' },
          { label: 'Calls', value: count(result.attempts_total), note: counted(result.retry_count, 'retry', 'retries') },
          {
            label: 'Cost',
            value: dollars(result.cost_usd.total),
            note: result.cost_usd.total === null ? 'a price is unknown' : `${dollars(result.cost_usd.wasted)} wasted`,
          },
        ]}
      />
      {result.assumptions.length === 0 ? null : (
        <p className="muted">
          {result.mode === 'simulate' ? 'A simulation assumes: ' : ''}
          {result.assumptions.join(' ')}
        </p>
      )}
    </Panel>
  );
}

function Details({ result }: { result: TestResult }) {
  const [scenario, setScenario] = useState<string | null>(null);
  const shown = useMemo(
    () => (scenario === null ? result.results : result.results.filter((prompt) => prompt.scenario === scenario)),
    [result, scenario],
  );
  return (
    <>
      <Columns min="24rem">
        <Checks result={result} />
        <RuleHits result={result} />
      </Columns>
      <ResultCharts result={result} />
      <Panel title="Scenarios" flush>
        <ScenarioGrid result={result} chosen={scenario} onChoose={setScenario} />
      </Panel>
      <Panel
        title={scenario === null ? 'Prompts' : `Prompts: ${labelled(scenario)}`}
        actions={scenario === null ? undefined : <Button onClick={() => setScenario(null)}>Show all</Button>}
        flush
      >
        <PromptList
          findings={result.mode === 'rehearsal' ? [] : result.findings}
          prompts={shown}
          providers={result.chain.providers.map(({ name }) => name)}
        />
      </Panel>
    </>
  );
}

function Checks({ result }: { result: TestResult }) {
  return (
    <Panel title="Checks">
      {result.checks.length === 0 ? (
        <p className="muted">
          {result.status === 'running' ? 'The checks run when the test has ended.' : 'There are no checks of a test that did not end.'}
        </p>
      ) : (
        <ul className={styles.checks}>
          {result.checks.map(({ name, passed, advisory, detail }) => (
            <li key={name}>
              <Badge tone={passed ? 'good' : advisory ? 'warn' : 'bad'}>{passed ? 'holds' : 'fails'}</Badge>
              <span>
                {labelled(detail)}
                {advisory ? <span className="muted"> (advisory)</span> : null}
              </span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

/** The number of failures that each rule decided, and the rules that decided none. */
function RuleHits({ result }: { result: TestResult }) {
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
