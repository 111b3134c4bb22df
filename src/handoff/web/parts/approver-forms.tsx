import { useState } from 'react';

import { TextArea, TextField } from '../../../kit/web/components/field.tsx';
import { Fields } from '../../../kit/web/components/form.tsx';
import type { Delegation } from '../../model/delegation.ts';
import type { Group } from '../../model/group.ts';
import { FormDialog } from './form-dialog.tsx';

/** The headers with which something is only written if nobody else has changed it, or made it, meanwhile. */
const unlessChanged = (before: { readonly version: number } | undefined): Record<string, string> =>
  before === undefined ? { 'if-none-match': '*' } : { 'if-match': `"${before.version}"` };

/** Sets the members of a group. */
export function GroupForm({ group, onClose }: { group?: Group; onClose: () => void }) {
  const [name, setName] = useState(group?.name ?? '');
  const [members, setMembers] = useState(group?.members.join('\n') ?? '');
  return (
    <FormDialog
      title={group === undefined ? 'New group' : `Group ${group.name}`}
      submit="Save"
      onClose={onClose}
      send={(client) => {
        const lines = members.split('\n').map((line) => line.trim());
        return client.putGroup({ params: { name }, body: { members: lines.filter((line) => line !== '') }, headers: unlessChanged(group) });
      }}
      refreshes={['approvals']}
    >
      {group === undefined ? (
        <TextField
          label="Name"
          hint="Policies name it as group:NAME."
          value={name}
          required
          onChange={({ target }) => setName(target.value)}
        />
      ) : null}
      <TextArea
        label="Members"
        hint="One name or mail address per line. The change counts for open questions too."
        rows={8}
        value={members}
        onChange={({ target }) => setMembers(target.value)}
      />
    </FormDialog>
  );
}

/** A time as a field of a form has it: the local one, to the minute. */
function localTime(time: string | null | undefined): string {
  if (time === null || time === undefined) return '';
  const date = new Date(time);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** @throws Error if the time is missing */
function timeIn(text: string, label: string): string {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) throw new Error(`${label} needs a time.`);
  return date.toISOString();
}

interface DelegationFormProps {
  /** The delegation that is changed; left out: a new one. */
  delegation?: Delegation;
  /** The only person who may be named; left out: any. */
  person?: string | undefined;
  onClose: () => void;
}

/** Lets the approvals of a person be given by another one for a time. */
export function DelegationForm({ delegation, person: only, onClose }: DelegationFormProps) {
  const [person, setPerson] = useState(delegation?.person ?? only ?? '');
  const [to, setTo] = useState(delegation?.to ?? '');
  const [from, setFrom] = useState(localTime(delegation?.from));
  const [until, setUntil] = useState(localTime(delegation?.until));
  const [reason, setReason] = useState(delegation?.reason ?? '');
  return (
    <FormDialog
      title={delegation === undefined ? 'New delegation' : `Delegation of ${delegation.person}`}
      submit="Save"
      onClose={onClose}
      send={async (client) => {
        const times = { ...(from === '' ? {} : { from: timeIn(from, 'From') }), until: timeIn(until, 'Until') };
        const body = { to, ...times, ...(reason.trim() === '' ? {} : { reason: reason.trim() }) };
        await client.putDelegation({ params: { person }, body, headers: unlessChanged(delegation) });
      }}
      refreshes={['approvals']}
    >
      <Fields>
        {delegation === undefined && only === undefined ? (
          <TextField label="Who is away" value={person} required onChange={({ target }) => setPerson(target.value)} />
        ) : null}
        <TextField label="Who approves instead" value={to} required onChange={({ target }) => setTo(target.value)} />
        <TextField label="From (optional)" type="datetime-local" value={from} onChange={({ target }) => setFrom(target.value)} />
        <TextField label="Until" type="datetime-local" required value={until} onChange={({ target }) => setUntil(target.value)} />
        <TextField label="Reason (optional)" value={reason} onChange={({ target }) => setReason(target.value)} />
      </Fields>
    </FormDialog>
  );
}
