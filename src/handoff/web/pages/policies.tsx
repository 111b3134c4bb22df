import { type ReactNode, useState } from 'react';

import { LoadedTable } from '../../../kit/web/app/loaded-table.tsx';
import { useTitle } from '../../../kit/web/app/title.ts';
import { Button } from '../../../kit/web/components/button.tsx';
import { Badge, Empty } from '../../../kit/web/components/feedback.tsx';
import { PageHeader, Panel } from '../../../kit/web/components/layout.tsx';
import type { Column } from '../../../kit/web/components/table.tsx';
import { moment } from '../../../kit/web/format.ts';
import type { HandoffClient } from '../../client/client.ts';
import type { Delegation } from '../../model/delegation.ts';
import type { Group } from '../../model/group.ts';
import { isSamePerson } from '../../model/people.ts';
import type { Policy } from '../../model/policy.ts';
import type { StandingApproval } from '../../model/standing.ts';
import { useDelegations, useGroups, useMay, useOwnKey, usePolicies, useStandingApprovals } from '../data/queries.ts';
import { DelegationForm, GroupForm } from '../parts/approver-forms.tsx';
import { Command, FormDialog, NewItem } from '../parts/form-dialog.tsx';
import { PolicyForm, PolicyView, TryPolicies } from '../parts/policy-form.tsx';
import { Name } from '../parts/texts.tsx';

/** What decides about actions: policies, groups, delegations and standing approvals. */
export function Policies() {
  useTitle('Policies');
  const mayManage = useMay('manage');
  const mayTry = useMay('read') || mayManage;
  return (
    <>
      <PageHeader
        title="Policies"
        subtitle="They decide who must be asked before an agent acts."
        actions={
          <>
            {mayTry ? <TryPolicies /> : null}
            {mayManage ? <NewItem label="New policy">{(close) => <PolicyForm onClose={close} />}</NewItem> : null}
          </>
        }
      />
      <PolicyList />
      <GroupList />
      <DelegationList />
      <StandingList />
    </>
  );
}

/** What is removed: its name, the request, and what follows from it. */
interface Removal {
  readonly label: string;
  readonly send: (client: HandoffClient) => Promise<unknown>;
  readonly effect: string;
}

/** A button that removes something after a question. */
function Remove({ label, send, effect }: Removal) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button aria-label={`Remove ${label}`} onClick={() => setOpen(true)}>
        Remove
      </Button>
      {open ? (
        <FormDialog danger title={`Remove ${label}`} submit="Remove" onClose={() => setOpen(false)} send={send} refreshes={['approvals']}>
          <p>{effect}</p>
        </FormDialog>
      ) : null}
    </>
  );
}

/** A button that opens the form of something that exists, which is given the function that closes it. */
function Edit({ label, children }: { label: string; children: (close: () => void) => ReactNode }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button aria-label={`Edit ${label}`} onClick={() => setOpen(true)}>
        Edit
      </Button>
      {open ? children(() => setOpen(false)) : null}
    </>
  );
}

const removing = <Row,>(mayRemove: (row: Row) => boolean, removal: (row: Row) => Removal, more?: (row: Row) => ReactNode): Column<Row> => ({
  name: 'Commands',
  nameHidden: true,
  cell: (row) => (
    <>
      {more?.(row)} {mayRemove(row) ? <Remove {...removal(row)} /> : null}
    </>
  ),
});

function PolicyList() {
  const mayManage = useMay('manage');
  return (
    <Panel flush>
      <LoadedTable
        query={usePolicies()}
        empty={
          <Empty title="No policies yet">
            <p>Without a policy, anybody who may answer is asked. To write one:</p>
            <Command>service-cli policies set refunds policy.json</Command>
          </Empty>
        }
        stacks="early"
        label="Policies"
        keyOf={({ name }) => name}
        columns={[
          { name: 'Policy', by: ({ name }) => name, cell: ({ name }) => <Name>{name}</Name> },
          {
            name: 'Mode',
            by: ({ mode }) => mode,
            cell: ({ mode }) => (mode === 'shadow' ? <Badge>shadow</Badge> : <Badge tone="good">enforced</Badge>),
          },
          { name: 'Order', number: true, by: ({ order }) => order, cell: ({ order }) => order },
          { name: 'For', cell: (policy) => <Match of={policy} /> },
          { name: 'Rules', number: true, by: ({ rules }) => rules.length, cell: ({ rules }) => rules.length },
          { name: 'In shadow', cell: (policy) => <Shadow of={policy} /> },
          { name: 'Warnings', cell: ({ warnings }) => warnings.map((warning) => <p key={warning}>{warning}</p>) },
          removing(
            () => mayManage,
            ({ name }: Policy) => ({
              label: name,
              send: (client) => client.deletePolicy({ params: { name } }),
              effect: 'Open questions keep the version with which they were asked.',
            }),
            (policy) => <PolicyView policy={policy} mayEdit={mayManage} />,
          ),
        ]}
      />
    </Panel>
  );
}

function Match({ of: { match } }: { of: Policy }) {
  const parts = Object.entries(match).filter(([, names]) => names.length > 0);
  return parts.length === 0 ? (
    <span className="muted">every action</span>
  ) : (
    parts.map(([what, names]) => (
      <div key={what}>
        {what} <bdi>{names.join(', ')}</bdi>
      </div>
    ))
  );
}

const Shadow = ({ of: { shadow, mode } }: { of: Policy }) =>
  mode === 'enforce' ? (
    <span className="muted">none</span>
  ) : (
    <>
      {shadow.asked} asked, {shadow.approved} approved, {shadow.rejected} rejected
    </>
  );

function GroupList() {
  const mayManage = useMay('manage');
  return (
    <Panel
      title="Groups"
      flush
      actions={mayManage ? <NewItem label="New group">{(close) => <GroupForm onClose={close} />}</NewItem> : undefined}
    >
      <LoadedTable
        query={useGroups()}
        empty={<Empty title="No groups yet" />}
        stacks
        label="Groups"
        keyOf={({ name }) => name}
        columns={[
          { name: 'Group', cell: ({ name }) => <Name>{name}</Name> },
          { name: 'Members', cell: ({ members }) => <bdi>{members.join(', ')}</bdi> },
          removing(
            () => mayManage,
            ({ name }: Group) => ({
              label: name,
              send: (client) => client.deleteGroup({ params: { name } }),
              effect: 'Policies that ask it then ask nobody in its place.',
            }),
            (group) => (mayManage ? <Edit label={group.name}>{(close) => <GroupForm group={group} onClose={close} />}</Edit> : null),
          ),
        ]}
      />
    </Panel>
  );
}

function DelegationList() {
  const own = useOwnKey();
  const mayManage = useMay('manage');
  const mayRespond = useMay('respond');
  const isOwn = (person: string) => mayRespond && isSamePerson(own?.responder ?? '', person);
  return (
    <Panel
      title="Delegations"
      flush
      actions={
        mayManage || (mayRespond && own?.responder) ? (
          <NewItem label="New delegation">
            {(close) => <DelegationForm person={mayManage ? undefined : (own?.responder ?? undefined)} onClose={close} />}
          </NewItem>
        ) : undefined
      }
    >
      <LoadedTable
        query={useDelegations()}
        empty={<Empty title="Nobody is away" />}
        stacks
        label="Delegations"
        keyOf={({ person }) => person}
        columns={[
          { name: 'Away', cell: ({ person }) => <Name>{person}</Name> },
          { name: 'Approves instead', cell: ({ to }) => <Name>{to}</Name> },
          { name: 'Until', tabular: true, cell: ({ until }) => moment(until) },
          { name: 'Reason', cell: ({ reason }) => <bdi>{reason}</bdi> },
          removing(
            ({ person }: Delegation) => mayManage || isOwn(person),
            ({ person }) => ({
              label: `the delegation of ${person}`,
              send: (client) => client.deleteDelegation({ params: { person } }),
              effect: 'The person approves again, and nobody in that place.',
            }),
            (delegation) =>
              mayManage || isOwn(delegation.person) ? (
                <Edit label={`the delegation of ${delegation.person}`}>
                  {(close) => <DelegationForm delegation={delegation} onClose={close} />}
                </Edit>
              ) : null,
          ),
        ]}
      />
    </Panel>
  );
}

function StandingList() {
  const own = useOwnKey();
  const mayManage = useMay('manage');
  const mayRespond = useMay('respond');
  return (
    <Panel title="Standing approvals" flush>
      <LoadedTable
        query={useStandingApprovals()}
        empty={<Empty title="No approval stands" />}
        stacks
        label="Standing approvals"
        keyOf={({ id }) => id}
        columns={[
          { name: 'Person', cell: ({ person }) => <Name>{person}</Name> },
          { name: 'Agent', cell: ({ agent_id }) => <Name>{agent_id}</Name> },
          { name: 'Tool', cell: ({ tool }) => <Name>{tool}</Name> },
          { name: 'For', cell: ({ scope }) => (scope === 'tool' ? 'any arguments' : 'the same arguments') },
          { name: 'Until', tabular: true, cell: ({ expires_at }) => moment(expires_at) },
          { name: 'Uses', number: true, cell: ({ uses }) => uses },
          removing(
            ({ person }: StandingApproval) => mayManage || (mayRespond && isSamePerson(own?.responder ?? '', person)),
            ({ id, person, tool }) => ({
              label: `the approval of ${tool} by ${person}`,
              send: (client) => client.deleteStandingApproval({ params: { id } }),
              effect: 'From now on the person is asked again.',
            }),
          ),
        ]}
      />
    </Panel>
  );
}
