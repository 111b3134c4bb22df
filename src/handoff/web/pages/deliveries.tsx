import { RotateCw } from 'lucide-react';
import { useState } from 'react';
import { Link, useNavigate, useParams } from 'react-router';

import { Load } from '../../../kit/web/app/load.tsx';
import { polled } from '../../../kit/web/app/queries.ts';
import { useTitle } from '../../../kit/web/app/title.ts';
import { Button } from '../../../kit/web/components/button.tsx';
import { Badge, Callout, Empty, type Tone } from '../../../kit/web/components/feedback.tsx';
import { SelectField } from '../../../kit/web/components/field.tsx';
import { Panel } from '../../../kit/web/components/layout.tsx';
import { type Column, Pager, Table } from '../../../kit/web/components/table.tsx';
import { useToast } from '../../../kit/web/components/toasts.tsx';
import { counted, moment, words } from '../../../kit/web/format.ts';
import { deliveryStatuses } from '../../model/constants.ts';
import type { Delivery, DeliveryStatus, Webhook, WebhookRequest } from '../../model/webhook.ts';
import { useAnswer, useMay, useWrite } from '../data/queries.ts';
import { FormDialog } from '../parts/form-dialog.tsx';
import { useWebhooks, WebhookFields, WebhookState } from './webhooks.tsx';

const perPage = 50;

const tones: Record<DeliveryStatus, Tone> = {
  pending: 'info',
  failed: 'warn',
  delivered: 'good',
  dead_letter: 'bad',
  cancelled: 'neutral',
};

/** What was sent, and what the receiver answered. */
const columns: Column<Delivery>[] = [
  {
    name: 'Event',
    cell: ({ event_type, packet_id }) => (packet_id === null ? event_type : <Link to={`/packets/${packet_id}`}>{event_type}</Link>),
  },
  { name: 'State', cell: ({ status }) => <Badge tone={tones[status]}>{words(status)}</Badge> },
  { name: 'Attempts', number: true, cell: ({ attempts }) => attempts },
  {
    name: 'Last answer',
    cell: ({ last_status_code, last_error }) => [last_status_code, last_error && words(last_error)].filter(Boolean).join(', ') || '–',
  },
  { name: 'Happened', tabular: true, muted: true, cell: ({ created_at }) => moment(created_at) },
  {
    name: 'Next',
    tabular: true,
    muted: true,
    cell: ({ delivered_at, next_retry_at }) => (delivered_at === null ? moment(next_retry_at) : `delivered ${moment(delivered_at)}`),
  },
];

/** A webhook: its state, what can be done with it, and its deliveries. */
export function WebhookPage() {
  const { id = '' } = useParams();
  useTitle('Webhook');
  const webhooks = useWebhooks();
  return (
    <Load query={webhooks} what="The webhook">
      {(found) => {
        const webhook = found.find((one) => one.id === id);
        return (
          <>
            {webhook === undefined ? (
              <Callout tone="info">This webhook was removed. Its deliveries stay readable.</Callout>
            ) : (
              <Summary webhook={webhook} />
            )}
            <Deliveries id={id} of="webhook" />
          </>
        );
      }}
    </Load>
  );
}

function Summary({ webhook }: { webhook: Webhook }) {
  const { id, url, active, events } = webhook;
  const mayManage = useMay('manage');
  const navigate = useNavigate();
  const toast = useToast();
  const [asked, setAsked] = useState<'change' | 'remove'>();
  const [draft, setDraft] = useState<WebhookRequest>({ url, events, secret: '' });
  const done = (text: string) => ({
    onSuccess() {
      toast({ text, tone: 'good' as const });
      setAsked(undefined);
    },
    onError: ({ message }: Error) => toast({ text: message, tone: 'bad' as const }),
  });
  const change = useWrite(
    (client, { secret, ...body }: Partial<WebhookRequest> & { active?: boolean }) =>
      client.patchWebhook({ params: { id }, body: { ...body, ...(secret ? { secret } : {}) } }),
    'webhooks',
  );
  const ping = useWrite((client, _: undefined) => client.pingWebhook({ params: { id } }), 'deliveries');
  const remove = useWrite((client, _: undefined) => client.deleteWebhook({ params: { id } }), 'webhooks');
  return (
    <Panel
      title={url}
      actions={
        mayManage ? (
          <>
            <Button busy={ping.isPending} onClick={() => ping.mutate(undefined, done('A test delivery is on its way.'))}>
              Test
            </Button>
            <Button
              busy={change.isPending}
              onClick={() => change.mutate({ active: !active }, done(active ? 'The webhook is paused.' : 'The webhook is active.'))}
            >
              {active ? 'Pause' : 'Activate'}
            </Button>
            <Button onClick={() => setAsked('change')}>Change</Button>
            <Button onClick={() => setAsked('remove')}>Remove</Button>
          </>
        ) : undefined
      }
    >
      <p>
        <WebhookState webhook={webhook} /> <span className="muted">{events.join(', ')}</span>
      </p>
      <FormDialog
        open={asked === 'change'}
        title="Change the webhook"
        onClose={() => setAsked(undefined)}
        submit="Save"
        request={change}
        onSubmit={() => change.mutate(draft, done('The webhook is changed.'))}
      >
        <WebhookFields draft={draft} onChange={setDraft} />
        <p className="muted">An empty secret keeps the present one. After a change, both sign for a day.</p>
      </FormDialog>
      <FormDialog
        open={asked === 'remove'}
        title="Remove the webhook"
        onClose={() => setAsked(undefined)}
        submit="Remove"
        danger
        request={remove}
        onSubmit={() => remove.mutate(undefined, { onSuccess: () => void navigate('/webhooks') })}
      >
        <p>It gets no more events, and its pending deliveries are cancelled. This can not be undone.</p>
      </FormDialog>
    </Panel>
  );
}

/** What was sent to a webhook or a channel. A message to a channel that is a dead letter can be sent again. */
export function Deliveries({ id, of }: { id: string; of: 'webhook' | 'channel' }) {
  const [status, setStatus] = useState('');
  const [page, setPage] = useState(0);
  const mayManage = useMay('manage');
  const toast = useToast();
  const query = { limit: perPage, offset: page * perPage, ...(status === '' ? {} : { status: status as DeliveryStatus }) };
  const deliveries = useAnswer(
    ['deliveries', id, query],
    async (client, signal) => {
      const request = { params: { id }, query, signal };
      return paged(await (of === 'webhook' ? client.listDeliveries : client.listChannelDeliveries).withResponse(request));
    },
    polled,
  );
  const replay = useWrite((client, delivery_id: string) => client.replayChannelDelivery({ params: { id, delivery_id } }), 'deliveries');
  const again: Column<Delivery> = {
    name: 'Actions',
    nameHidden: true,
    cell: (row) =>
      row.status === 'dead_letter' ? (
        <Button icon={RotateCw} onClick={() => replay.mutate(row.id, { onError: ({ message }) => toast({ text: message, tone: 'bad' }) })}>
          Replay
        </Button>
      ) : null,
  };
  return (
    <Panel
      title="Deliveries"
      flush
      actions={
        <SelectField
          label="State"
          labelHidden
          options={[{ value: '', label: 'all states' }, ...deliveryStatuses.map((value) => ({ value, label: words(value) }))]}
          value={status}
          onChange={({ target }) => {
            setStatus(target.value);
            setPage(0);
          }}
        />
      }
    >
      <Load query={deliveries} what="The deliveries">
        {({ rows, total }) =>
          total === 0 ? (
            <Empty title="No deliveries">Send a test, or wait for the next event.</Empty>
          ) : (
            <>
              <Table
                label="Deliveries"
                rows={rows}
                keyOf={(row) => row.id}
                columns={of === 'channel' && mayManage ? [...columns, again] : columns}
              />
              <Pager page={page} perPage={perPage} total={total} onPage={setPage} />
            </>
          )
        }
      </Load>
    </Panel>
  );
}

const paged = ({ body, headers }: { body: unknown; headers: Readonly<Record<string, string>> }) => ({
  rows: body as Delivery[],
  total: Number(headers['x-total-count']),
});

/** The deliveries that have used up their attempts. */
export function DeadLetters() {
  useTitle('Dead letters');
  const mayManage = useMay('manage');
  const toast = useToast();
  const [page, setPage] = useState(0);
  const query = { limit: perPage, offset: page * perPage };
  const letters = useAnswer(
    ['deliveries', 'dead', page],
    async (client, signal) => paged(await client.listDeadLetters.withResponse({ query, signal })),
    polled,
  );
  const failed = ({ message }: Error) => toast({ text: message, tone: 'bad' });
  const replay = useWrite((client, delivery_id: string) => client.replayDeadLetter({ params: { delivery_id } }), 'deliveries');
  const retry = useWrite((client, _: undefined) => client.retryAll({ body: { force: true } }), 'deliveries');
  const actions: Column<Delivery> = {
    name: 'Actions',
    nameHidden: true,
    cell: ({ id }) => (
      <Button
        icon={RotateCw}
        onClick={() => replay.mutate(id, { onSuccess: () => toast({ text: 'It is sent again.', tone: 'good' }), onError: failed })}
      >
        Replay
      </Button>
    ),
  };
  return (
    <Panel
      title="Dead letters"
      flush
      actions={
        mayManage && letters.data?.total ? (
          <Button
            busy={retry.isPending}
            onClick={() =>
              retry.mutate(undefined, {
                onSuccess: ({ retried, remaining }) =>
                  toast({ text: `${counted(retried, 'delivery', 'deliveries')} sent again, ${remaining} remaining.`, tone: 'good' }),
                onError: failed,
              })
            }
          >
            Retry all
          </Button>
        ) : undefined
      }
    >
      <Load query={letters} what="The dead letters">
        {({ rows, total }) =>
          total === 0 ? (
            <Empty title="No dead letters">A delivery that fails six times is kept here until it is replayed.</Empty>
          ) : (
            <>
              <Table label="Dead letters" rows={rows} keyOf={(row) => row.id} columns={mayManage ? [...columns, actions] : columns} />
              <Pager page={page} perPage={perPage} total={total} onPage={setPage} />
            </>
          )
        }
      </Load>
    </Panel>
  );
}
