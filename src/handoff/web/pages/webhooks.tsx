import { Plus } from 'lucide-react';
import { useState } from 'react';
import { Link, Outlet } from 'react-router';

import { Load } from '../../../kit/web/app/load.tsx';
import { useTitle } from '../../../kit/web/app/title.ts';
import { Button } from '../../../kit/web/components/button.tsx';
import { Badge, Empty } from '../../../kit/web/components/feedback.tsx';
import { CheckField, TextField } from '../../../kit/web/components/field.tsx';
import { PageHeader, PageTabs, Panel } from '../../../kit/web/components/layout.tsx';
import { Table } from '../../../kit/web/components/table.tsx';
import { useToast } from '../../../kit/web/components/toasts.tsx';
import { webhookEvents } from '../../model/constants.ts';
import type { Webhook, WebhookRequest } from '../../model/webhook.ts';
import { useAnswer, useMay, useWrite } from '../data/queries.ts';
import { Command, FormDialog } from '../parts/form-dialog.tsx';
import { Ago } from '../parts/texts.tsx';
import styles from './webhooks.module.css';

/** The frame of the pages about what the service sends to others. */
export function Notifying() {
  return (
    <>
      <PageHeader title="Webhooks and channels" />
      <PageTabs
        label="Webhooks"
        tabs={[
          { to: '/webhooks', label: 'Webhooks', end: true },
          { to: '/webhooks/channels', label: 'Channels' },
          { to: '/webhooks/dead-letters', label: 'Dead letters' },
        ]}
      />
      <Outlet />
    </>
  );
}

/** The webhooks of the tenant. */
export const useWebhooks = () => useAnswer(['webhooks'], (client, signal) => client.listWebhooks({ signal }));

/** The list of webhooks, with a form for a new one. */
export function Webhooks() {
  useTitle('Webhooks');
  const webhooks = useWebhooks();
  const mayManage = useMay('manage');
  const [making, setMaking] = useState(false);
  return (
    <>
      <Panel
        title="Registered"
        flush
        actions={
          mayManage ? (
            <Button icon={Plus} onClick={() => setMaking(true)}>
              New webhook
            </Button>
          ) : undefined
        }
      >
        <Load query={webhooks} what="The webhooks">
          {(found) =>
            found.length === 0 ? (
              <Empty title="No webhooks yet">
                <p>A webhook gets a signed request for each event, with retries. To register one:</p>
                <Command>service-cli hooks create --url https://example.com/hook</Command>
              </Empty>
            ) : (
              <Table
                label="Webhooks"
                rows={found}
                keyOf={({ id }) => id}
                columns={[
                  { name: 'Address', cell: ({ id, url }) => <Link to={`/webhooks/${id}`}>{url}</Link> },
                  { name: 'State', cell: (webhook) => <WebhookState webhook={webhook} /> },
                  { name: 'Events', number: true, cell: ({ events }) => (events.length === webhookEvents.length ? 'all' : events.length) },
                  { name: 'Registered', muted: true, tabular: true, cell: ({ created_at }) => <Ago at={created_at} /> },
                ]}
              />
            )
          }
        </Load>
      </Panel>
      {making ? <NewWebhook onClose={() => setMaking(false)} /> : null}
    </>
  );
}

/** Whether anything is sent to a webhook or a channel, and why not. */
export function WebhookState({ webhook: { active, disabled_reason } }: { webhook: Pick<Webhook, 'active' | 'disabled_reason'> }) {
  if (active) return <Badge tone="good">active</Badge>;
  return (
    <Badge tone={disabled_reason === null ? 'neutral' : 'bad'}>
      {disabled_reason === null ? 'paused' : `disabled: ${disabled_reason}`}
    </Badge>
  );
}

function NewWebhook({ onClose }: { onClose: () => void }) {
  const toast = useToast();
  const [draft, setDraft] = useState<WebhookRequest>(() => ({ url: '', events: [...webhookEvents], secret: newSecret() }));
  const create = useWrite((client, body: WebhookRequest) => client.createWebhook({ body }), 'webhooks');
  return (
    <FormDialog
      open
      title="New webhook"
      onClose={onClose}
      submit="Register"
      request={create}
      onSubmit={() =>
        create.mutate(draft, {
          onSuccess() {
            toast({ text: 'The webhook is registered.', tone: 'good' });
            onClose();
          },
        })
      }
    >
      <WebhookFields draft={draft} onChange={setDraft} />
    </FormDialog>
  );
}

/** A secret of 32 random bytes. */
const newSecret = () => Array.from(crypto.getRandomValues(new Uint8Array(32)), (byte) => byte.toString(16).padStart(2, '0')).join('');

interface WebhookFieldsProps {
  draft: WebhookRequest;
  onChange(draft: WebhookRequest): void;
}

/** The fields of a webhook. An empty secret means to keep the present one. */
export function WebhookFields({ draft, onChange }: WebhookFieldsProps) {
  const events = draft.events ?? [];
  return (
    <>
      <TextField
        label="Address"
        type="url"
        placeholder="https://example.com/hook"
        value={draft.url}
        onChange={({ target }) => onChange({ ...draft, url: target.value })}
      />
      <TextField
        label="Secret"
        hint="Signs every delivery. Copy it now: it is never shown again."
        value={draft.secret}
        onChange={({ target }) => onChange({ ...draft, secret: target.value })}
      />
      <fieldset className={styles.events}>
        <legend>Events</legend>
        {webhookEvents.map((event) => (
          <CheckField
            key={event}
            label={event}
            checked={events.includes(event)}
            onChange={({ target }) =>
              onChange({ ...draft, events: webhookEvents.filter((one) => (one === event ? target.checked : events.includes(one))) })
            }
          />
        ))}
      </fieldset>
    </>
  );
}
