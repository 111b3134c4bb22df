import { useSearchParams } from 'react-router';

import { Badge, Callout } from '../../../kit/web/components/feedback.tsx';
import { SelectField } from '../../../kit/web/components/field.tsx';
import { PageHeader, Panel } from '../../../kit/web/components/layout.tsx';
import { Table } from '../../../kit/web/components/table.tsx';
import { count, dollars, durationText, moment, percent } from '../../../kit/web/format.ts';
import type { TestResult } from '../../model/test.ts';
import { useResult, useResults } from '../data/queries.ts';
import { Load } from '../parts/load.tsx';
import { useTitle } from '../parts/title.ts';
import { Verdict } from '../parts/verdict.tsx';
import styles from './compare.module.css';

/** Two results of tests side by side. */
export function ComparePage() {
  useTitle('Compare two tests');
  const [params, setParams] = useSearchParams();
  const a = params.get('a') ?? '';
  const b = params.get('b') ?? '';
  const first = useResult(a, a !== '');
  const second = useResult(b, b !== '');
  return (
    <>
      <PageHeader title="Compare two tests" subtitle={first.data?.chain_name} />
      <Load query={first} what="The first result">
        {(left) => (
          <>
            <Panel>
              <Pickers left={left} b={b} onPick={(which, id) => setParams({ a, b, [which]: id }, { replace: true })} />
            </Panel>
            {b === '' ? null : (
              <Load query={second} what="The second result">
                {(right) => <Comparison left={left} right={right} />}
              </Load>
            )}
          </>
        )}
      </Load>
    </>
  );
}

const titleOf = ({ started_at, mode, preset, chain_version }: TestResult) =>
  `${moment(started_at)} · ${mode} · ${preset ?? 'own faults'} · version ${chain_version}`;

function Pickers({ left, b, onPick }: { left: TestResult; b: string; onPick(which: 'a' | 'b', id: string): void }) {
  const results = useResults(left.chain_id);
  const options = (results.data ?? [left]).map((result) => ({ value: result.id, label: titleOf(result) }));
  return (
    <div className={styles.pickers}>
      <SelectField label="A" options={options} value={left.id} onChange={(event) => onPick('a', event.target.value)} />
      <SelectField
        label="B"
        options={[{ value: '', label: 'Choose a second test' }, ...options.filter(({ value }) => value !== left.id)]}
        value={b}
        onChange={(event) => onPick('b', event.target.value)}
      />
    </div>
  );
}

interface Row {
  name: string;
  a: string;
  b: string;
  change: string;
  /** Whether B is better; undefined where neither is. */
  better?: boolean;
}

/** A row of two numbers; `lower` says that less is better. */
function row(
  name: string,
  a: number | null | undefined,
  b: number | null | undefined,
  text: (value: number) => string,
  lower: boolean,
  difference = text,
): Row {
  const show = (value: number | null | undefined) => (value === null || value === undefined ? '–' : text(value));
  if (typeof a !== 'number' || typeof b !== 'number' || a === b) return { name, a: show(a), b: show(b), change: a === b ? 'same' : '–' };
  const sign = b > a ? '+' : '−';
  return { name, a: show(a), b: show(b), change: `${sign}${difference(Math.abs(b - a))}`, better: b < a === lower };
}

/** The difference of two rates, in percentage points. */
const points = (difference: number) => `${count(difference * 100)} points`;

function Comparison({ left, right }: { left: TestResult; right: TestResult }) {
  const rows: Row[] = [
    row('Served', left.success_rate, right.success_rate, percent, false, points),
    row('Lost', left.failure_count, right.failure_count, count, true),
    row('By fallback', left.fallback_rate, right.fallback_rate, percent, true, points),
    row('Retries', left.retry_count, right.retry_count, count, true),
    row('Calls', left.attempts_total, right.attempts_total, count, true),
    row('Latency p50', left.latency_ms?.p50, right.latency_ms?.p50, durationText, true),
    row('Latency p95', left.latency_ms?.p95, right.latency_ms?.p95, durationText, true),
    row('Latency p99', left.latency_ms?.p99, right.latency_ms?.p99, durationText, true),
    row('Added by failures', left.added_latency_ms, right.added_latency_ms, durationText, true),
    row('Cost', left.cost_usd.total, right.cost_usd.total, dollars, true),
  ];
  const unlike = [
    left.mode === right.mode ? '' : 'their modes differ: simulated and real figures do not compare',
    left.seed === right.seed && left.preset === right.preset ? '' : 'their faults or seeds differ',
    left.prompt_count === right.prompt_count ? '' : 'they have different numbers of prompts',
  ].filter(Boolean);
  const changed = JSON.stringify(left.chain) !== JSON.stringify(right.chain);
  return (
    <>
      {unlike.length === 0 ? null : (
        <Callout tone="warn" title="These tests are not alike:">
          {unlike.join('; ')}.
        </Callout>
      )}
      <Callout tone="info">
        {changed
          ? `The chain changed between them: version ${left.chain_version} and version ${right.chain_version}.`
          : 'Both ran the same chain.'}
      </Callout>
      <Panel title="Verdicts">
        <div className={styles.verdicts}>
          <span>
            A <Verdict verdict={left.verdict} status={left.status} />
          </span>
          <span>
            B <Verdict verdict={right.verdict} status={right.status} />
          </span>
        </div>
      </Panel>
      <Panel title="Figures" flush>
        <Table
          label="Figures of both tests"
          rows={rows}
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
      <Panel title="Prompts served by provider" flush>
        <Table
          label="Prompts served by provider in both tests"
          rows={[...new Set([...left.providers, ...right.providers].map(({ name }) => name))]}
          keyOf={(name) => name}
          columns={[
            { name: 'Provider', cell: (name) => name },
            { name: 'A', number: true, cell: (name) => count(left.providers.find((provider) => provider.name === name)?.served) },
            { name: 'B', number: true, cell: (name) => count(right.providers.find((provider) => provider.name === name)?.served) },
          ]}
        />
      </Panel>
    </>
  );
}
