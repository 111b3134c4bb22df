import { useState } from 'react';
import { Link, Outlet } from 'react-router';

import { byId } from '../../../kit/web/app/by-id.tsx';
import { LoadedTable } from '../../../kit/web/app/loaded-table.tsx';
import { useTitle } from '../../../kit/web/app/title.ts';
import { Button } from '../../../kit/web/components/button.tsx';
import { Empty } from '../../../kit/web/components/feedback.tsx';
import { TextField } from '../../../kit/web/components/field.tsx';
import { bind } from '../../../kit/web/components/form.tsx';
import { PageHeader, PageTabs, Panel } from '../../../kit/web/components/layout.tsx';
import { toast } from '../../../kit/web/components/toasts.tsx';
import type { HandoffClient } from '../../client/client.ts';
import { defaultWebhookEvents, webhookEvents } from '../../model/constants.ts';
import type { Webhook, WebhookRequest } from '../../model/webhook.ts';
import { useMay, useWebhooks } from '../data/queries.ts';
import { CheckGroup } from '../parts/check-group.tsx';
import { Command, FormDialog, NewItem } from '../parts/form-dialog.tsx';
import { TimeSince } from '../parts/texts.tsx';
import { ReceiverPage, ReceiverState } from './receiver.tsx';

/** The frame of the pages of webhooks. */
export function WebhookFrame() {
  return (
    <>
      <PageHeader title="Webhooks" />
      <PageTabs
        label="Webhooks"
        links={[
          { to: '/webhooks', label: 'Webhooks' },
          { to: '/webhooks/dead-letters', label: 'Dead letters' },
        ]}
      />
      <Outlet />
    </>
  );
}

/** The list of webhooks, with a form for a new one. */
export function Webhooks() {
  useTitle('Webhooks');
  const webhooks = useWebhooks();
  const mayManage = useMay('manage');
  return (
    <Panel
      title="Registered"
      flush
      actions={mayManage ? <NewItem label="New webhook">{(close) => <NewWebhook onClose={close} />}</NewItem> : undefined}
    >
      <LoadedTable
        query={webhooks}
        empty={
          <Empty title="No webhooks yet">
            <p>A webhook gets a signed request for each event, with retries. To register one:</p>
            <Command>service-cli hooks create --url https://example.com/hook</Command>
          </Empty>
        }
        stacks
        label="Webhooks"
        keyOf={({ id }) => id}
        columns={[
          { name: 'Address', by: ({ url }) => url, cell: ({ id, url }) => <Link to={`/webhooks/${id}`}>{url}</Link> },
          { name: 'State', cell: (webhook) => <ReceiverState of={webhook} /> },
          { name: 'Events', number: true, cell: ({ events }) => (events.length === webhookEvents.length ? 'all' : events.length) },
          {
            name: 'Registered',
            muted: true,
            tabular: true,
            by: ({ created_at }) => created_at,
            cell: ({ created_at }) => <TimeSince at={created_at} />,
          },
        ]}
      />
    </Panel>
  );
}

function NewWebhook({ onClose }: { onClose: () => void }) {
  const [draft, setDraft] = useState<WebhookRequest>(() => ({ url: '', events: [...defaultWebhookEvents], secret: newSecret() }));
  return (
    <FormDialog
      title="New webhook"
      onClose={onClose}
      submit="Register"
      send={(client) => client.createWebhook({ body: draft })}
      refreshes={['webhooks']}
      onDone={() => toast({ text: 'The webhook is registered.', tone: 'good' })}
    >
      <WebhookFields draft={draft} onChange={setDraft} withoutSecret="Signs every delivery. At least 16 characters." />
    </FormDialog>
  );
}

/** A secret of 32 random bytes. */
const newSecret = () => Array.from(crypto.getRandomValues(new Uint8Array(32)), (byte) => byte.toString(16).padStart(2, '0')).join('');

interface WebhookFieldsProps {
  draft: WebhookRequest;
  onChange: (draft: WebhookRequest) => void;
  /** What is said beside an empty secret. */
  withoutSecret: string;
}

/** The fields of a webhook. */
function WebhookFields({ draft, onChange, withoutSecret }: WebhookFieldsProps) {
  const bound = bind(draft, (changes) => onChange({ ...draft, ...changes }));
  return (
    <>
      <TextField label="Address" type="url" placeholder="https://example.com/hook" {...bound('url')} />
      <TextField
        label="Secret"
        hint={draft.secret === '' ? withoutSecret : 'Signs every delivery. Copy it now: it is shown only once.'}
        {...bound('secret')}
      />
      <CheckGroup
        legend="Events"
        options={webhookEvents}
        chosen={draft.events ?? []}
        onChange={(events) => onChange({ ...draft, events })}
      />
    </>
  );
}

/** A webhook: its state, what can be done with it, and its deliveries. */
export const WebhookPage = byId(({ id }) => (
  <ReceiverPage<Webhook>
    of="webhook"
    id={id}
    query={useWebhooks()}
    title={({ url }) => url}
    about={({ events }) => events.join(', ')}
    actions={(webhook) => <ChangeWebhook webhook={webhook} />}
  />
));

function ChangeWebhook({ webhook: { id, url, events } }: { webhook: Webhook }) {
  const [draft, setDraft] = useState<WebhookRequest>();
  const close = () => setDraft(undefined);
  const send = (client: HandoffClient, { secret, ...body }: WebhookRequest) =>
    client.patchWebhook({ params: { id }, body: { ...body, ...(secret === '' ? {} : { secret }) } });
  return (
    <>
      <Button onClick={() => setDraft({ url, events, secret: '' })}>Change</Button>
      {draft === undefined ? null : (
        <FormDialog
          title="Change the webhook"
          onClose={close}
          submit="Save"
          send={(client) => send(client, draft)}
          refreshes={['webhooks']}
          onDone={() => toast({ text: 'The webhook is changed.', tone: 'good' })}
        >
          <WebhookFields
            draft={draft}
            onChange={setDraft}
            withoutSecret="An empty secret keeps the present one. After a change, both sign for a day."
          />
        </FormDialog>
      )}
    </>
  );
}
