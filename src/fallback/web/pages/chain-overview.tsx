import { Link } from 'react-router';
import { Load } from '../../../kit/web/app/load.tsx';
import { Badge } from '../../../kit/web/components/feedback.tsx';
import { Panel, Stats } from '../../../kit/web/components/layout.tsx';
import { Notes } from '../../../kit/web/components/notes.tsx';
import { Table } from '../../../kit/web/components/table.tsx';
import { counted, dollars, duration, durationText, moment, words } from '../../../kit/web/format.ts';
import type { Chain } from '../../model/chain.ts';
import type { Finding } from '../../model/finding.ts';
import type { ChainSummary } from '../../model/summary.ts';
import { apiBase } from '../../rules/kinds.ts';
import { useFindings, useSummary } from '../data/queries.ts';
import { Action } from '../parts/action-cell.tsx';
import { findingNotes } from '../parts/finding-notes.ts';
import { labelled, labelledNotes } from '../parts/labels.ts';
import { ruleText, withoutRules } from '../parts/rule-text.ts';
import { Verdict } from '../parts/verdict.tsx';
import { useCurrentChain } from './chain.tsx';
import styles from './chain-overview.module.css';

/** The page that describes a chain in sentences and tables. */
export function ChainOverview() {
  const chain = useCurrentChain();
  const summary = useSummary(chain);
  const findings = useFindings(chain);
  return (
    <>
      <Notes tone="warn" title={counted(chain.warnings.length, 'warning')} notes={labelledNotes(chain.warnings)} />
      <Load query={findings} what="The findings of the import" lines={0}>
        {(found) => <ImportFindings findings={found} />}
      </Load>
      <Panel title="Summary">
        <Load query={summary} what="The summary" lines={2}>
          {(found) => <SummaryBody chain={chain} summary={found} />}
        </Load>
      </Panel>
      <Panel title="Providers" flush>
        <Providers chain={chain} />
      </Panel>
      <Panel title="Rules">
        {chain.fallback_rules.length === 0 ? (
          <p className="muted">{withoutRules}</p>
        ) : (
          <ol className={styles.rules}>
            {chain.fallback_rules.map((rule, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a rule is identified by its index.
              <li key={index}>
                <span className={styles.ruleHead}>
                  <span className="muted tabular">{index + 1}</span> <Badge>{words(rule.condition)}</Badge> <Action action={rule.action} />
                </span>
                <span>{ruleText(rule)}</span>
              </li>
            ))}
          </ol>
        )}
      </Panel>
    </>
  );
}

/** What the import of a file left out or interpreted differently. */
function ImportFindings({ findings }: { findings: readonly Finding[] }) {
  const notes = findingNotes(findings);
  return <Notes tone="warn" title={`The import has ${counted(notes.length, 'finding')}.`} notes={notes} />;
}

function SummaryBody({ chain, summary }: { chain: Chain; summary: ChainSummary }) {
  const { last_test, worst_case } = summary;
  return (
    <>
      <p className={styles.text}>{labelled(summary.text)}</p>
      <Stats
        items={[
          { label: 'Providers', value: summary.provider_count, note: `${summary.primary} first` },
          { label: 'Rules', value: summary.rule_count, note: `${counted(summary.conditions.by_default.length, 'condition')} by default` },
          { label: 'Longest prompt', ...duration(worst_case.latency_ms), note: `${counted(worst_case.attempts, 'attempt')} at most` },
          ...(worst_case.first_token_ms < worst_case.latency_ms
            ? [{ label: 'First content', ...duration(worst_case.first_token_ms), note: 'of a stream, at the latest' }]
            : []),
          {
            label: 'Last test',
            value: last_test === null ? '–' : <Verdict verdict={last_test.verdict} status={last_test.status} />,
            note:
              last_test === null ? (
                'never tested'
              ) : (
                <>
                  <Link to={`/results/${last_test.id}`}>{moment(last_test.started_at)}</Link>
                  {last_test.chain_version === chain.version ? '' : `, of version ${last_test.chain_version}`}
                </>
              ),
          },
        ]}
      />
    </>
  );
}

function Providers({ chain }: { chain: Chain }) {
  return (
    <Table
      stacks="early"
      label="Providers in their order"
      rows={chain.providers}
      keyOf={({ name }) => name}
      columns={[
        { name: 'Provider', cell: ({ name }) => <strong className={styles.name}>{name}</strong> },
        { name: 'Priority', number: true, cell: ({ priority }) => priority },
        { name: 'Model', cell: ({ model_id }) => <code>{model_id}</code> },
        { name: 'Kind', cell: ({ provider }) => provider ?? <span className="muted">none</span> },
        { name: 'Address', muted: true, cell: (provider) => <span className={styles.breaks}>{apiBase(provider) ?? 'none'}</span> },
        {
          name: 'Key variable',
          cell: ({ api_key_env }) =>
            api_key_env === null ? <span className="muted">none</span> : <code className={styles.breaks}>{api_key_env}</code>,
        },
        { name: 'Timeout', number: true, cell: ({ timeout_ms }) => durationText(timeout_ms) },
        {
          name: 'Price per 1M',
          number: true,
          cell: ({ input_cost_per_1m, output_cost_per_1m }) =>
            input_cost_per_1m === null && output_cost_per_1m === null ? (
              <span className="muted">unknown</span>
            ) : (
              `${price(input_cost_per_1m)} in, ${price(output_cost_per_1m)} out`
            ),
        },
      ]}
    />
  );
}

const price = (amount: number | null) => (amount === null ? '?' : dollars(amount));
