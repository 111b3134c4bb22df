import { useState } from 'react';
import { Link } from 'react-router';

import { readJson } from '../../../kit/json.ts';
import { faultsOf } from '../../../kit/web/app/transport.ts';
import { Button } from '../../../kit/web/components/button.tsx';
import { Dialog } from '../../../kit/web/components/dialog.tsx';
import { Callout } from '../../../kit/web/components/feedback.tsx';
import { TextArea, TextField } from '../../../kit/web/components/field.tsx';
import { Fields, Form } from '../../../kit/web/components/form.tsx';
import { Table } from '../../../kit/web/components/table.tsx';
import type { HandoffClient } from '../../client/client.ts';
import type { Policy, PolicyRequest, Replayed, Then, TryRequest } from '../../model/policy.ts';
import { useWrite } from '../data/queries.ts';
import { FormDialog } from './form-dialog.tsx';
import { Name } from './texts.tsx';

/** The policy as it is published: what a caller sends, without what the service adds. */
function sentOf({ description, order, match, rules, mode, remember }: Policy): PolicyRequest {
  return { ...(description === null ? {} : { description }), order, match, rules, mode, ...(remember === null ? {} : { remember }) };
}

/** A button that shows a policy, to be changed where the key may. */
export function PolicyView({ policy, mayEdit }: { policy: Policy; mayEdit: boolean }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button aria-label={`${mayEdit ? 'Edit' : 'Show'} ${policy.name}`} onClick={() => setOpen(true)}>
        {mayEdit ? 'Edit' : 'Show'}
      </Button>
      {open ? <PolicyForm policy={policy} mayEdit={mayEdit} onClose={() => setOpen(false)} /> : null}
    </>
  );
}

const first: PolicyRequest = { match: { tools: ['refund'] }, rules: [{ then: { ask: [{ from: ['group:support'] }] } }] };

interface PolicyFormProps {
  /** The policy that is changed; left out: a new one. */
  policy?: Policy;
  mayEdit?: boolean;
  onClose: () => void;
}

/** Publishes a policy as JSON. It is refused if somebody else has changed it meanwhile. */
export function PolicyForm({ policy, mayEdit = true, onClose }: PolicyFormProps) {
  const [name, setName] = useState(policy?.name ?? '');
  const [text, setText] = useState(() => JSON.stringify(policy === undefined ? first : sentOf(policy), null, 2));
  return (
    <FormDialog
      wide
      title={policy === undefined ? 'New policy' : `Policy ${policy.name}`}
      submit={mayEdit ? 'Publish' : 'Close'}
      onClose={onClose}
      send={async (client) => {
        if (!mayEdit) return;
        const headers: Record<string, string> = policy === undefined ? { 'if-none-match': '*' } : { 'if-match': `"${policy.version}"` };
        await client.putPolicy({ params: { name }, body: policyIn(text), headers });
      }}
      refreshes={['approvals']}
    >
      {policy === undefined ? <TextField label="Name" value={name} required onChange={({ target }) => setName(target.value)} /> : null}
      <TextArea code label="Policy, as JSON" rows={16} value={text} readOnly={!mayEdit} onChange={({ target }) => setText(target.value)} />
      <Help />
      {policy?.warnings.map((warning) => (
        <Callout key={warning} tone="warn">
          {warning}
        </Callout>
      ))}
      <Replay name={name} text={text} />
    </FormDialog>
  );
}

/** The policy in a JSON text; the service says what else is wrong with it. @throws Error if it is no JSON */
const policyIn = (text: string) => jsonIn(text, 'The policy') as PolicyRequest;

function jsonIn(text: string, what: string): unknown {
  try {
    return readJson(text);
  } catch {
    throw new Error(`${what} is not valid JSON.`);
  }
}

const parts: readonly (readonly [string, string])[] = [
  ['match', 'agents, tools and tags for which it decides, * at the end of a name for any rest; left out: everything'],
  ['order', 'a number; the first policy by it, then by name, that matches decides'],
  ['rules[].when', 'a JSON Schema of {tool, arguments, agent, framework, tags, priority, custom}; the first rule that fits decides'],
  ['rules[].then', '{"approve": reason}, {"reject": reason} or {"ask": [step, ...]}, of 1 to 5 steps'],
  [
    'step',
    'from: people and "group:NAME"; count: how many; timeout_seconds with on_timeout reject, next or keep; escalate: [{after_seconds, to}]',
  ],
  ['mode', '"shadow": decides nothing, and counts what it would have decided'],
  ['remember', '{"scope": "call" or "tool", "max_seconds"}: what approvers may let stand'],
];

/** What a policy may have. */
function Help() {
  return (
    <details>
      <summary>What a policy may have</summary>
      <dl>
        {parts.map(([part, text]) => (
          <div key={part}>
            <dt>
              <code>{part}</code>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

/** Why a request was rejected. */
function Rejected({ error }: { error: Error | null }) {
  if (error === null) return null;
  return (
    <Callout tone="bad" alert title="The request was rejected.">
      {faultsOf(error).length > 1 ? faultsOf(error).map(({ field, detail }) => <p key={`${field} ${detail}`}>{detail}</p>) : error.message}
    </Callout>
  );
}

/** Judges past actions by the policy as it is written, before it is published. */
function Replay({ name, text }: { name: string; text: string }) {
  const { data, error, isPending, mutate } = useWrite(
    // What is not stored has no name yet.
    async (client: HandoffClient) => client.replayPolicy({ params: { name: name || 'draft' }, body: { policy: policyIn(text) } }),
    ['approvals', 'replays'],
  );
  return (
    <section aria-label="Replay">
      <Button busy={isPending} onClick={() => mutate()}>
        Replay on past actions
      </Button>
      <Rejected error={error} />
      <div role="status">{data === undefined ? null : <ReplayResult found={data} />}</div>
    </section>
  );
}

/** The most packets that are listed. */
const maxListed = 20;

function ReplayResult({ found: { actions, approved, rejected, asked, agreeing, disagreeing } }: { found: Replayed }) {
  if (actions === 0) return <p>No past action matches it.</p>;
  return (
    <>
      <p>
        Past actions that it matches: {actions}. It would have approved {approved}, rejected {rejected}, and asked about {asked}. People
        decided {agreeing} of these alike, and {disagreeing.length} otherwise{disagreeing.length === 0 ? '.' : ':'}
      </p>
      {disagreeing.length === 0 ? null : (
        <Table
          stacks
          label="Decided otherwise"
          rows={disagreeing.slice(0, maxListed)}
          keyOf={({ packet_id }) => packet_id}
          columns={[
            { name: 'Packet', cell: ({ packet_id }) => <Link to={`/packets/${packet_id}`}>{packet_id.slice(-12)}</Link> },
            { name: 'People decided', cell: ({ person }) => person },
            { name: 'The policy would', cell: ({ policy, rule }) => `${policy}, by rule ${rule}` },
          ]}
        />
      )}
      {disagreeing.length > maxListed ? <p className="muted">{disagreeing.length - maxListed} more are not listed.</p> : null}
    </>
  );
}

/** Asks which policy would decide about an action. Nothing is written. */
export function TryPolicies() {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>Try</Button>
      {open ? <TryDialog onClose={() => setOpen(false)} /> : null}
    </>
  );
}

function TryDialog({ onClose }: { onClose: () => void }) {
  const [agent, setAgent] = useState('');
  const [tool, setTool] = useState('');
  const [given, setGiven] = useState('{}');
  const [tags, setTags] = useState('');
  const { data, error, isPending, mutate } = useWrite(
    async (client: HandoffClient) => {
      const action = { tool, arguments: jsonIn(given, 'The arguments text') as TryRequest['action']['arguments'] };
      const named = tags.split(',').map((tag) => tag.trim());
      return client.tryPolicies({ body: { agent, action, tags: named.filter((tag) => tag !== '') } });
    },
    ['approvals', 'trials'],
  );
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      title="Try the policies"
      actions={
        <>
          <Button onClick={onClose}>Close</Button>
          <Button look="primary" busy={isPending} onClick={() => mutate()}>
            Try
          </Button>
        </>
      }
    >
      <Form onSubmit={() => mutate()}>
        <Fields>
          <TextField label="Agent" value={agent} required onChange={({ target }) => setAgent(target.value)} />
          <TextField label="Tool" value={tool} required onChange={({ target }) => setTool(target.value)} />
          <TextField label="Tags, with commas (optional)" value={tags} onChange={({ target }) => setTags(target.value)} />
        </Fields>
        <TextArea code label="Arguments, as JSON" rows={6} value={given} onChange={({ target }) => setGiven(target.value)} />
        <Rejected error={error} />
        <div role="status">{data === undefined ? null : <Tried found={data} />}</div>
        <button type="submit" hidden aria-hidden="true" tabIndex={-1}>
          Try
        </button>
      </Form>
    </Dialog>
  );
}

function Tried({ found: { policy, rule, then, skipped } }: { found: Awaited<ReturnType<HandoffClient['tryPolicies']>> }) {
  return (
    <>
      <p>
        {policy === null ? (
          'No policy matches: anybody who may answer is asked.'
        ) : (
          <>
            <Name>{policy}</Name>
            {rule === null
              ? ': no rule fits, so anybody but the asker is asked, and only verified names count.'
              : `, rule ${rule}: ${inWords(then)}.`}
          </>
        )}
      </p>
      {skipped.length === 0 ? null : (
        <ul>
          {skipped.map(({ policy: name, rule: number, path }) => (
            <li key={`${name} ${number}`}>
              <Name>{name}</Name>
              {number === null ? ' does not match' : `, rule ${number} does not fit`}: <code>{path}</code>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

/** What a rule does, in words. */
function inWords(then: Then | null): string {
  if (then === null) return 'anybody who may answer is asked';
  if ('approve' in then) return `approves (${then.approve})`;
  if ('reject' in then) return `rejects (${then.reject})`;
  return then.ask.map(({ from, count = 1 }) => `asks ${from.join(', ')}${count === 1 ? '' : `, ${count} of them`}`).join('; then ');
}
