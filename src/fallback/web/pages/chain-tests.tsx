import { useState } from 'react';
import { Link, useNavigate } from 'react-router';
import { Load } from '../../../kit/web/app/load.tsx';
import { Button } from '../../../kit/web/components/button.tsx';
import { Empty } from '../../../kit/web/components/feedback.tsx';
import { Panel } from '../../../kit/web/components/layout.tsx';
import { Pager, Table } from '../../../kit/web/components/table.tsx';
import { count, durationText, moment, percent } from '../../../kit/web/format.ts';
import type { TestResult } from '../../model/test.ts';
import { resultsPerPage, useMayWrite, useResults } from '../data/queries.ts';
import { TestForm } from '../edit/test-form.tsx';
import { planName } from '../parts/plan-name.ts';
import { Verdict } from '../parts/verdict.tsx';
import { useCurrentChain } from './chain.tsx';
import styles from './chain-tests.module.css';

/** The page of a chain's tests, with a form to start one. */
export function ChainTests() {
  const chain = useCurrentChain();
  const mayWrite = useMayWrite();
  return (
    <>
      {mayWrite ? (
        <Panel title="New test">
          <TestForm chain={chain} />
        </Panel>
      ) : null}
      <History chainId={chain.id} />
    </>
  );
}

function History({ chainId }: { chainId: string }) {
  const [page, setPage] = useState(0);
  const results = useResults(chainId, page);
  const [picked, setPicked] = useState<readonly string[]>([]);
  const navigate = useNavigate();
  // Selecting a third result deselects the first one.
  const pick = (id: string) =>
    setPicked((before) => (before.includes(id) ? before.filter((other) => other !== id) : [...before.slice(-1), id]));
  return (
    <Panel
      title="History"
      flush
      actions={
        <Button disabled={picked.length !== 2} onClick={() => void navigate(`/compare?a=${picked[0]}&b=${picked[1]}`)}>
          Compare two
        </Button>
      }
    >
      <Load query={results} what="The history">
        {(found) =>
          found.total === 0 ? (
            <Empty title="Never tested">A simulation takes a moment and calls no provider.</Empty>
          ) : (
            <>
              <ResultTable results={found.results} picked={picked} onPick={pick} />
              <Pager page={page} perPage={resultsPerPage} total={found.total} onPage={setPage} />
            </>
          )
        }
      </Load>
    </Panel>
  );
}

interface ResultTableProps {
  results: readonly TestResult[];
  picked: readonly string[];
  onPick: (id: string) => void;
}

function ResultTable({ results, picked, onPick }: ResultTableProps) {
  return (
    <Table<TestResult>
      label="Tests, newest first"
      stacks
      rows={results}
      keyOf={({ id }) => id}
      columns={[
        { name: 'Started', tabular: true, cell: ({ id, started_at }) => <Link to={`/results/${id}`}>{moment(started_at)}</Link> },
        { name: 'Verdict', cell: ({ verdict, status }) => <Verdict verdict={verdict} status={status} /> },
        { name: 'Mode', cell: (result) => `${result.mode}, ${planName(result)}` },
        { name: 'Prompts', number: true, cell: ({ prompt_count }) => count(prompt_count) },
        { name: 'Served', number: true, cell: ({ success_rate }) => percent(success_rate) },
        { name: 'Served by fallback', number: true, cell: ({ fallback_rate }) => percent(fallback_rate) },
        { name: 'Latency p95', number: true, cell: ({ latency_ms }) => durationText(latency_ms?.p95) },
        { name: 'Version', number: true, cell: ({ chain_version }) => chain_version },
        {
          name: 'Compare',
          cell: ({ id, started_at }) => (
            <input
              type="checkbox"
              className={styles.pick}
              aria-label={`Compare the test of ${moment(started_at)}`}
              checked={picked.includes(id)}
              onChange={() => onPick(id)}
            />
          ),
        },
      ]}
    />
  );
}
