import { useState } from 'react';

import { commaList } from '../../../kit/comma-list.ts';
import { Load } from '../../../kit/web/app/load.tsx';
import { useTitle } from '../../../kit/web/app/title.ts';
import { Button } from '../../../kit/web/components/button.tsx';
import { Badge, Callout } from '../../../kit/web/components/feedback.tsx';
import { CheckField, TextField } from '../../../kit/web/components/field.tsx';
import { bind } from '../../../kit/web/components/form.tsx';
import { PageHeader, Panel } from '../../../kit/web/components/layout.tsx';
import { Table } from '../../../kit/web/components/table.tsx';
import { defaultScopes, scopes } from '../../model/constants.ts';
import type { ApiKey, KeyRequest } from '../../model/key.ts';
import { useKeys, useMay, useOwnKey } from '../data/queries.ts';
import { signIn } from '../data/sign-in.ts';
import { CheckGroup } from '../parts/check-group.tsx';
import { FormDialog, NewItem, ShownOnce } from '../parts/form-dialog.tsx';
import { People, Sessions } from '../parts/people.tsx';
import { Name, TimeLeft, TimeSince } from '../parts/texts.tsx';

const meanings = {
  read: 'read packets, events and the audit log',
  work: 'create, claim and change packets',
  respond: 'answer questions, make answer links',
  manage: 'keys, webhooks and channels',
  erase: 'erase what packets say; no key has it by default',
};

/** The keys of the tenant, or of another one for an admin key. */
export function Keys({ tenantId }: { tenantId?: string }) {
  useTitle(tenantId === undefined ? 'Keys' : undefined);
  const own = useOwnKey();
  const mayManage = useMay('manage');
  const keys = useKeys(tenantId);
  const [asked, setAsked] = useState<{ what: 'rotate' | 'revoke'; key: ApiKey }>();
  const [secret, setSecret] = useState<string>();
  const close = () => setAsked(undefined);
  return (
    <>
      {tenantId === undefined ? <PageHeader title="Keys" /> : null}
      <Panel
        title="API keys"
        flush
        actions={
          mayManage ? (
            <NewItem label="New key">{(closeForm) => <NewKey tenantId={tenantId} onClose={closeForm} onCreated={setSecret} />}</NewItem>
          ) : undefined
        }
      >
        <Load query={keys} what="The keys">
          {(found) => (
            <KeyTable keys={found} ownId={own?.id ?? undefined} {...(mayManage && { onAsk: (what, key) => setAsked({ what, key }) })} />
          )}
        </Load>
      </Panel>
      {asked?.what === 'rotate' ? (
        <FormDialog
          title={`Rotate ${asked.key.name}`}
          onClose={close}
          submit="Rotate"
          send={(client) => client.rotateKey({ params: { id: asked.key.id } })}
          refreshes={['keys']}
          onDone={({ key }) => setSecret(key)}
        >
          <p>A new key with the same rights takes its place. The present one stays valid for an hour.</p>
        </FormDialog>
      ) : null}
      {asked?.what === 'revoke' ? (
        <FormDialog
          title={`Revoke ${asked.key.name}`}
          onClose={close}
          submit="Revoke"
          danger
          send={(client) => client.deleteKey({ params: { id: asked.key.id } })}
          refreshes={['keys']}
        >
          <p>The key stops working now; answer links it created are revoked. This cannot be undone.</p>
          {asked.key.id === own?.id ? <Callout tone="warn">This is the key that you are signed in with.</Callout> : null}
        </FormDialog>
      ) : null}
      {tenantId === undefined && (signIn !== undefined || own?.kind === 'session') ? <Sessions /> : null}
      {tenantId === undefined && mayManage && signIn !== undefined ? <People /> : null}
      <ShownOnce title="The new key" secret={secret} onClose={() => setSecret(undefined)}>
        Copy it now: it is shown only once.
      </ShownOnce>
    </>
  );
}

interface KeyTableProps {
  keys: readonly ApiKey[];
  ownId: string | undefined;
  onAsk?: (what: 'rotate' | 'revoke', key: ApiKey) => void;
}

function KeyTable({ keys, ownId, onAsk }: KeyTableProps) {
  return (
    <Table
      stacks="early"
      label="API keys"
      rows={keys}
      keyOf={({ id }) => id}
      columns={[
        {
          name: 'Key',
          by: ({ name }) => name,
          cell: ({ id, name, prefix }) => (
            <>
              <Name>{name}</Name> <code className="muted">{prefix}…</code> {id === ownId ? <Badge tone="info">yours</Badge> : null}
            </>
          ),
        },
        {
          name: 'Permissions',
          cell: ({ admin, scopes: own }) => (
            <>
              {admin ? <Badge tone="warn">admin</Badge> : null} {own.join() === defaultScopes.join() ? 'everything' : own.join(', ')}
            </>
          ),
        },
        { name: 'As agents', cell: ({ agents }) => <Name>{agents === null ? 'any' : agents.join(', ')}</Name> },
        {
          name: 'Sees',
          cell: ({ sees, queues }) => (sees === 'all' ? 'all packets' : <Name>{`its own; queues: ${(queues ?? []).join(', ')}`}</Name>),
        },
        { name: 'Responder', cell: ({ responder }) => <Name>{responder ?? 'anybody'}</Name> },
        { name: 'Tier', cell: ({ tier }) => tier },
        {
          name: 'Created',
          by: ({ created_at }) => created_at,
          muted: true,
          cell: ({ created_at, expires_at }) => (expires_at === null ? <TimeSince at={created_at} /> : <TimeLeft until={expires_at} />),
        },
        ...(onAsk === undefined
          ? []
          : [
              {
                name: 'Actions',
                nameHidden: true,
                cell: (key: ApiKey) => (
                  <>
                    <Button look="quiet" aria-label={`Rotate ${key.name}`} onClick={() => onAsk('rotate', key)}>
                      Rotate
                    </Button>
                    <Button look="quiet" aria-label={`Revoke ${key.name}`} onClick={() => onAsk('revoke', key)}>
                      Revoke
                    </Button>
                  </>
                ),
              },
            ]),
      ]}
    />
  );
}

interface NewKeyProps {
  tenantId: string | undefined;
  onClose: () => void;
  onCreated: (key: string) => void;
}

function NewKey({ tenantId, onClose, onCreated }: NewKeyProps) {
  const own = useOwnKey();
  // No key has the scope erase unless somebody chooses it.
  const given: (typeof scopes)[number][] = (own?.scopes ?? defaultScopes).filter((scope) => scope !== 'erase');
  const [draft, setDraft] = useState({
    ...{ name: '', agents: '', queues: '', responder: '', scopes: given, admin: false, seesOwn: false },
  });
  const set = (changes: Partial<typeof draft>) => setDraft({ ...draft, ...changes });
  const bound = bind(draft, set);
  const [agents, queues] = [commaList(draft.agents), commaList(draft.queues)];
  const rights = {
    scopes: draft.seesOwn ? draft.scopes.filter((scope) => scope !== 'manage') : draft.scopes,
    ...(draft.seesOwn ? { sees: 'own' as const, ...(queues.length === 0 ? {} : { queues }) } : {}),
    ...(agents.length === 0 ? {} : { agents }),
    ...(draft.responder.trim() === '' ? {} : { responder: draft.responder.trim() }),
  };
  const body: KeyRequest = { name: draft.name, ...(tenantId && { tenant_id: tenantId }), ...(draft.admin ? { admin: true } : rights) };
  return (
    <FormDialog
      title="New key"
      onClose={onClose}
      submit="Create"
      send={(client) => client.createKey({ body })}
      refreshes={['keys']}
      onDone={({ key }) => onCreated(key)}
    >
      <TextField label="What it is for" {...bound('name')} />
      {own?.admin ? (
        <CheckField label="Admin key: may do everything" checked={draft.admin} onChange={({ target }) => set({ admin: target.checked })} />
      ) : null}
      {draft.admin ? null : (
        <>
          <CheckGroup
            legend="It may"
            options={scopes}
            hints={meanings}
            chosen={draft.scopes}
            onChange={(chosen) => set({ scopes: chosen })}
          />
          <TextField label="Only as these agents (optional)" hint="Ids, separated by commas." {...bound('agents')} />
          <CheckField
            label="Sees only what is its agents' own"
            hint="Recommended for agents: packets that they send, receive or hold. Such a key can't manage."
            checked={draft.seesOwn}
            onChange={({ target }) => set({ seesOwn: target.checked })}
          />
          {draft.seesOwn ? (
            <TextField
              label="Queues (optional)"
              hint="Target agents whose packets it also sees and claims, separated by commas."
              {...bound('queues')}
            />
          ) : null}
          <TextField label="Answers only as (optional)" hint="The name that its answers carry." {...bound('responder')} />
        </>
      )}
    </FormDialog>
  );
}
