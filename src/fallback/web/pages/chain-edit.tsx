import { useNavigate, useSearchParams } from 'react-router';
import { byId } from '../../../kit/web/app/by-id.tsx';
import { Load } from '../../../kit/web/app/load.tsx';
import { useTitle } from '../../../kit/web/app/title.ts';
import { Button } from '../../../kit/web/components/button.tsx';
import { Callout } from '../../../kit/web/components/feedback.tsx';
import { TextArea, TextField } from '../../../kit/web/components/field.tsx';
import { bind, Fields, Form } from '../../../kit/web/components/form.tsx';
import { PageHeader, Panel } from '../../../kit/web/components/layout.tsx';
import type { Chain } from '../../model/chain.ts';
import { useChain, useMayWrite } from '../data/queries.ts';
import { Assessment } from '../edit/assessment.tsx';
import { type PartProps, useChainForm } from '../edit/chain-form.ts';
import { Conflict } from '../edit/conflict.tsx';
import { CooldownFields } from '../edit/cooldown-fields.tsx';
import { type ChainDraft, draftOf, emptyDraft } from '../edit/draft.ts';
import { LeaveGuard } from '../edit/leave-guard.tsx';
import { ProviderPanel } from '../edit/provider-panel.tsx';
import { RulePanel } from '../edit/rule-panel.tsx';

/** The page for a new chain; `?from=` starts with a copy of another chain. */
export function NewChain() {
  const [params] = useSearchParams();
  const from = params.get('from');
  useTitle('New chain');
  return from === null ? <ChainForm key="new" start={emptyDraft()} /> : <CopyOf id={from} />;
}

function CopyOf({ id }: { id: string }) {
  const chain = useChain(id);
  return (
    <Load query={chain} what="The chain to copy">
      {(found) => <ChainForm key={found.id} start={{ ...draftOf(found), name: `${found.name} copy` }} />}
    </Load>
  );
}

/** The page to edit a stored chain. */
export const EditChain = byId(function EditById({ id }) {
  const chain = useChain(id);
  useTitle(chain.data === undefined ? undefined : `Edit ${chain.data.name}`);
  return (
    <Load query={chain} what="The chain" back={{ to: '/chains', label: 'Back to chains' }}>
      {(found) => <ChainForm start={draftOf(found)} kept={found} />}
    </Load>
  );
});

function ChainForm({ start, kept }: { start: ChainDraft; kept?: Chain }) {
  const mayWrite = useMayWrite();
  const navigate = useNavigate();
  const { base, request, check, faults, isUnsaved, saving, save, keepTheirs, saveMine, ...part } = useChainForm(start, kept);
  return (
    <Form ref={saving.form} onSubmit={save}>
      <PageHeader
        sticky
        title={base === undefined ? 'New chain' : `Edit ${base.name}`}
        subtitle={base === undefined ? undefined : `Version ${base.version}`}
        actions={
          <>
            <Button onClick={() => void navigate(base === undefined ? '/chains' : `/chains/${base.id}`)}>Cancel</Button>
            <Button type="submit" look="primary" busy={saving.busy} disabled={!mayWrite}>
              Save
            </Button>
          </>
        }
      />
      {mayWrite ? null : <Callout tone="info">This key may only read: changes can’t be saved with it.</Callout>}
      {saving.error === null ? null : (
        <Callout tone="bad" alert title="The chain was not saved.">
          {saving.error.message}
        </Callout>
      )}
      <Assessment check={check} faults={faults} tried={saving.tried} />
      <NamePanel {...part} />
      <ProviderPanel {...part} />
      <RulePanel {...part} />
      {saving.theirs === undefined ? null : (
        <Conflict mine={request} theirs={saving.theirs} onClose={saving.reset} onKeepTheirs={keepTheirs} onSaveMine={saveMine} />
      )}
      <LeaveGuard isUnsaved={isUnsaved} />
    </Form>
  );
}

function NamePanel({ draft, onChange, faultOf, onLeave }: PartProps) {
  const bound = bind(
    draft,
    (changes) => onChange((before) => ({ ...before, ...changes })),
    (field) => faultOf(field, field),
    onLeave,
  );
  return (
    <Panel title="Chain">
      <Fields min="18rem">
        <TextField label="Name" {...bound('name')} />
        <TextArea label="Description" rows={2} placeholder="What the chain is for" {...bound('description')} />
      </Fields>
      <CooldownFields
        cooldown={draft.cooldown}
        title="Cool-down: how many failures leave out a provider, also for later prompts (empty: none)"
        onChange={(changes) => onChange((before) => ({ ...before, cooldown: { ...before.cooldown, ...changes } }))}
        faultIn={(field) => faultOf(`cooldown.${field}`, `cooldown.${field}`)}
        onLeave={(field) => onLeave(`cooldown.${field}`)}
      />
    </Panel>
  );
}
