import { useState } from 'react';
import { Link } from 'react-router';

import { Load } from '../../../kit/web/app/load.tsx';
import { useTitle } from '../../../kit/web/app/title.ts';
import { Empty } from '../../../kit/web/components/feedback.tsx';
import { PageHeader, Panel } from '../../../kit/web/components/layout.tsx';
import { Pager, Table } from '../../../kit/web/components/table.tsx';
import { count, cut } from '../../../kit/web/format.ts';
import type { Agent } from '../../model/agent.ts';
import { claimableStatus } from '../../rules/packet-life.ts';
import { rowsPerPage, useAgents, useWaiting } from '../data/queries.ts';
import { ContractButton } from '../parts/contract.tsx';
import { Command } from '../parts/form-dialog.tsx';
import { Name, TimeSince } from '../parts/texts.tsx';

const packetsOf = (filters: Record<string, string>) => `/packets?${new URLSearchParams(filters)}`;

const figure = (number: number, to: string) => (number === 0 ? <span className="muted">0</span> : <Link to={to}>{count(number)}</Link>);

/** The agents of the tenant, and the packets that nobody takes. */
export function Agents() {
  useTitle('Agents');
  const [page, setPage] = useState(0);
  const agents = useAgents(page);
  return (
    <>
      <PageHeader title="Agents" />
      <Waiting />
      <Panel title="Known agents" flush>
        <Load query={agents} what="The agents">
          {({ agents: found, total }) =>
            total === 0 ? (
              <Empty title="No agents yet">
                <p>An agent is listed as soon as a request names it. For example, one that waits for work:</p>
                <Command>service-cli packets next --agent resolver --wait 30</Command>
              </Empty>
            ) : (
              <>
                <AgentTable agents={found} />
                <Pager page={page} perPage={rowsPerPage} total={total} onPage={setPage} />
              </>
            )
          }
        </Load>
      </Panel>
    </>
  );
}

const AgentTable = ({ agents }: { agents: readonly Agent[] }) => (
  <Table
    stacks
    label="Agents"
    rows={agents}
    keyOf={({ agent_id }) => agent_id}
    columns={[
      { name: 'Agent', by: ({ agent_id }) => agent_id, cell: ({ agent_id }) => <Name>{agent_id}</Name> },
      {
        name: 'Queued',
        number: true,
        by: ({ waiting }) => waiting,
        cell: ({ agent_id, waiting }) => figure(waiting, packetsOf({ target_agent: agent_id, status: claimableStatus })),
      },
      {
        name: 'Holding',
        number: true,
        by: ({ holding }) => holding,
        cell: ({ agent_id, holding }) => figure(holding, packetsOf({ claimed_by: agent_id })),
      },
      {
        name: 'Contract',
        cell: ({ agent_id, contract }) =>
          contract === null ? <span className="muted">None</span> : <ContractButton agentId={agent_id} version={contract} />,
      },
      {
        name: 'Last seen',
        muted: true,
        tabular: true,
        by: ({ last_seen_at }) => last_seen_at,
        cell: ({ last_seen_at }) => <TimeSince at={last_seen_at} />,
      },
    ]}
  />
);

/** The packets that wait longest for an agent. */
function Waiting() {
  const waiting = useWaiting();
  if (waiting.data === undefined ? waiting.error === null : waiting.data.total === 0) return null;
  return (
    <Panel
      title="Waiting longest"
      flush
      actions={
        waiting.data === undefined ? undefined : (
          <Link to={packetsOf({ status: claimableStatus, order: 'asc' })}>All {count(waiting.data.total)}</Link>
        )
      }
    >
      <Load query={waiting} what="The packets">
        {({ packets }) => (
          <Table
            stacks
            label="Packets that wait longest"
            rows={packets}
            keyOf={({ id }) => id}
            columns={[
              {
                name: 'Packet',
                cell: ({ id, context }) => (
                  <Link to={`/packets/${id}`}>
                    <Name>{cut(context.summary, 120)}</Name>
                  </Link>
                ),
              },
              { name: 'For', cell: ({ metadata }) => <Name>{metadata.target_agent.id}</Name> },
              { name: 'Created', muted: true, tabular: true, cell: ({ created_at }) => <TimeSince at={created_at} /> },
            ]}
          />
        )}
      </Load>
    </Panel>
  );
}
