import { Navigate, useSearchParams } from 'react-router';
import { Load } from '../../../kit/web/app/load.tsx';
import { useTitle } from '../../../kit/web/app/title.ts';
import { LinkButton } from '../../../kit/web/components/button.tsx';
import { Badge, Callout, Empty } from '../../../kit/web/components/feedback.tsx';
import { SelectField } from '../../../kit/web/components/field.tsx';
import { Columns, PageHeader, Panel } from '../../../kit/web/components/layout.tsx';
import { Table } from '../../../kit/web/components/table.tsx';
import { count, dollars, durationText, moment, percent, percentagePoints } from '../../../kit/web/format.ts';
import { type TestResult, verdicts } from '../../model/test.ts';
import { useFigures, useResults } from '../data/queries.ts';
import { planName } from '../parts/plan-name.ts';
import { Verdict } from '../parts/verdict.tsx';

/** The page that compares two test results. */
export function ComparePage() {
  useTitle('Compare two tests');
  const [params] = useSearchParams();
  const a = params.get('a') ?? '';
  const first = useFigures(a, a !== '');
  if (a === '') {
    return (
      <Empty level={1} title="Compare two tests" actions={<LinkButton to="/chains">Show all chains</LinkButton>}>
        Choose two tests in the history of a chain.
      </Empty>
    );
  }
  return (
    <>
      <PageHeader title="Compare two tests" subtitle={first.data?.chain_name ?? ' '} />
      <Load query={first} what="The first result">
        {(left) => <Pair left={left} />}
      </Load>
    </>
  );
}

function Pair({ left }: { left: TestResult }) {
  const [params, setParams] = useSearchParams();
  const b = params.get('b') ?? '';
  const second = useFigures(b, b !== '');
  return (
    <>
      <Panel>
        <Pickers left={left} b={b} onPick={(which, id) => setParams({ a: left.id, b, [which]: id }, { replace: true })} />
      </Panel>
      {b === '' ? null : (
        <Load query={second} what="The second result">
          {(right) =>
            // The older test is A, so that changes read from then to now; its id sorts first.
            right.id < left.id ? <Navigate to={`/compare?a=${b}&b=${left.id}`} replace /> : <Differences left={left} right={right} />
          }
        </Load>
      )}
    </>
  );
}

const titleOf = (result: TestResult) =>
  `${moment(result.started_at)} · ${result.mode} · ${planName(result)} · version ${result.chain_version}`;

function Pickers({ left, b, onPick }: { left: TestResult; b: string; onPick: (which: 'a' | 'b', id: string) => void }) {
  const latest = useResults(left.chain_id).data?.results ?? [];
  // Results in the URL may be older than the latest ones.
  const results = latest.some(({ id }) => id === left.id) ? latest : [...latest, left];
  const options = results.map((result) => ({ value: result.id, label: titleOf(result) }));
  const others = options.filter(({ value }) => value !== left.id);
  const second = b === '' || others.some(({ value }) => value === b) ? [] : [{ value: b, label: 'an older test' }];
  return (
    <Columns min="20rem">
      <SelectField label="A" options={options} value={left.id} onChange={(event) => onPick('a', event.target.value)} />
      <SelectField
        label="B"
        options={[{ value: '', label: 'Choose a second test' }, ...others, ...second]}
        value={b}
        onChange={(event) => onPick('b', event.target.value)}
      />
    </Columns>
  );
}

/** A figure of a result and how to compare it. By default lower values are better, and a difference is shown like a value. */
interface Figure {
  name: string;
  of: (result: TestResult) => number | null | undefined;
  text: (value: number) => string;
  moreIsBetter?: boolean;
  difference?: (value: number) => string;
}

const figures: readonly Figure[] = [
  { name: 'Served', of: ({ success_rate }) => success_rate, text: percent, moreIsBetter: true, difference: percentagePoints },
  { name: 'Lost', of: ({ failure_count }) => failure_count, text: count },
  { name: 'Served by fallback', of: ({ fallback_rate }) => fallback_rate, text: percent, difference: percentagePoints },
  { name: 'Retries', of: ({ retry_count }) => retry_count, text: count },
  { name: 'Calls', of: ({ attempts_total }) => attempts_total, text: count },
  { name: 'Latency p50', of: ({ latency_ms }) => latency_ms?.p50, text: durationText },
  { name: 'Latency p95', of: ({ latency_ms }) => latency_ms?.p95, text: durationText },
  { name: 'Latency p99', of: ({ latency_ms }) => latency_ms?.p99, text: durationText },
  { name: 'Added by failures', of: ({ added_latency_ms }) => added_latency_ms, text: durationText },
  { name: 'Cost', of: ({ cost_usd }) => cost_usd.total, text: dollars },
];

/** The rank of a result's verdict, the best first; a test without one is behind all others. */
const rankOf = ({ verdict }: TestResult) => (verdict === null ? verdicts.length : verdicts.indexOf(verdict));

/**
 * A row of the table. `better`: whether B is better. It is undefined if neither is, if one test was simulated and the other was not, or
 * if the better figure belongs to the test that lost prompts.
 */
function rowOf({ name, of, text, moreIsBetter = false, difference = text }: Figure, left: TestResult, right: TestResult) {
  const [a, b] = [of(left) ?? null, of(right) ?? null];
  const shown = { name, a: a === null ? '–' : text(a), b: b === null ? '–' : text(b) };
  if (a === null || b === null) return { ...shown, change: '–', better: undefined };
  if (a === b) return { ...shown, change: 'same', better: undefined };
  const isHigherBetter = b > a === moreIsBetter;
  const [winner, loser] = isHigherBetter ? [right, left] : [left, right];
  // Prompts that are lost early are quick and cheap; that is not better.
  const isEarned = winner.verdict !== 'lost_as_ruled' && rankOf(winner) <= rankOf(loser);
  const comparable = (left.mode === 'simulate') === (right.mode === 'simulate');
  return {
    ...shown,
    change: `${b > a ? '+' : '−'}${difference(Math.abs(b - a))}`,
    better: comparable && isEarned ? isHigherBetter : undefined,
  };
}

function Differences({ left, right }: { left: TestResult; right: TestResult }) {
  return (
    <>
      <Alikeness left={left} right={right} />
      <Panel title="Verdicts">
        <div className="cluster">
          {Object.entries({ A: left, B: right }).map(([name, { verdict, status }]) => (
            <span key={name}>
              {name} <Verdict verdict={verdict} status={status} />
            </span>
          ))}
        </div>
      </Panel>
      <Panel title="Figures" flush>
        <Table
          label="Figures of both tests"
          rows={figures.map((figure) => rowOf(figure, left, right))}
          keyOf={({ name }) => name}
          columns={[
            { name: 'Figure', cell: ({ name }) => name },
            { name: 'A', number: true, cell: ({ a }) => a },
            { name: 'B', number: true, cell: ({ b }) => b },
            {
              name: 'Change',
              number: true,
              cell: ({ change, better }) =>
                better === undefined ? change : <Badge tone={better ? 'good' : 'bad'}>{`${change} ${better ? 'better' : 'worse'}`}</Badge>,
            },
          ]}
        />
      </Panel>
      <Served left={left} right={right} />
    </>
  );
}

/** Whether a test had faults of its own. A result names a preset, but not those. */
const hasOwnFaults = ({ mode, preset }: TestResult): boolean => preset === null && (mode === 'simulate' || mode === 'drill');

/** Notes about differences that make the tests hard to compare, such as a change of the chain. */
function Alikeness({ left, right }: { left: TestResult; right: TestResult }) {
  const unlike = [
    left.mode === right.mode ? '' : 'their modes differ: simulated and real figures are not comparable',
    left.seed === right.seed && left.preset === right.preset ? '' : 'their faults or seeds differ',
    hasOwnFaults(left) && hasOwnFaults(right) ? 'both have faults of their own, which may not be the same' : '',
    left.deadline_ms === right.deadline_ms ? '' : 'their deadlines for a prompt differ',
    left.prompt_count === right.prompt_count ? '' : 'they have different numbers of prompts',
  ].filter(Boolean);
  const changed = JSON.stringify(left.chain) !== JSON.stringify(right.chain);
  return (
    <>
      {unlike.length === 0 ? null : <Callout tone="warn">These tests differ: {unlike.join('; ')}.</Callout>}
      <Callout tone="info">
        {changed
          ? `The chain changed between them: version ${left.chain_version} and version ${right.chain_version}.`
          : 'Both tested the same chain.'}
      </Callout>
    </>
  );
}

function Served({ left, right }: { left: TestResult; right: TestResult }) {
  const served = (result: TestResult, name: string) => count(result.providers.find((provider) => provider.name === name)?.served);
  return (
    <Panel title="Prompts served by provider" flush>
      <Table
        label="Prompts served by provider in both tests"
        rows={[...new Set([...left.providers, ...right.providers].map(({ name }) => name))].map((name) => ({ name }))}
        keyOf={({ name }) => name}
        columns={[
          { name: 'Provider', cell: ({ name }) => name },
          { name: 'A', number: true, cell: ({ name }) => served(left, name) },
          { name: 'B', number: true, cell: ({ name }) => served(right, name) },
        ]}
      />
    </Panel>
  );
}
