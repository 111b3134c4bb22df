import { Eye, RotateCw } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import { Link } from 'react-router';
import { readJson } from '../../../kit/json.ts';

import { Load } from '../../../kit/web/app/load.tsx';
import { useTitle } from '../../../kit/web/app/title.ts';
import { Button } from '../../../kit/web/components/button.tsx';
import { CodeBlock, CopyButton } from '../../../kit/web/components/code.tsx';
import { Dialog } from '../../../kit/web/components/dialog.tsx';
import { Badge, Empty, type Tone } from '../../../kit/web/components/feedback.tsx';
import { SelectField } from '../../../kit/web/components/field.tsx';
import { Panel } from '../../../kit/web/components/layout.tsx';
import { type Column, Pager, Table } from '../../../kit/web/components/table.tsx';
import { toast, toastOutcome } from '../../../kit/web/components/toasts.tsx';
import { counted, words } from '../../../kit/web/format.ts';
import { deliveryStatuses } from '../../model/constants.ts';
import type { Delivery, DeliveryStatus } from '../../model/webhook.ts';
import {
  type AnyDelivery,
  type ReceiverKind,
  rowsPerPage,
  useDeadLetters,
  useDeliveries,
  useDelivery,
  useMay,
  useWebhooks,
  useWrite,
} from '../data/queries.ts';
import { TimeSince, TimeUntil } from '../parts/texts.tsx';

const tones: Record<DeliveryStatus, Tone> = {
  pending: 'info',
  failed: 'warn',
  delivered: 'good',
  dead_letter: 'bad',
  cancelled: 'neutral',
};

/** What was sent to a webhook or to a channel. */
const event: Column<AnyDelivery> = {
  name: 'Event',
  cell: ({ event_type, packet_id }) => (packet_id === null ? event_type : <Link to={`/packets/${packet_id}`}>{event_type}</Link>),
};
const attempted: Column<AnyDelivery>[] = [
  { name: 'Attempts', number: true, cell: ({ attempts }) => attempts },
  { name: 'Last response', cell: responseOf },
  { name: 'Happened', muted: true, cell: ({ created_at }) => <TimeSince at={created_at} /> },
];

/** The status of the last response, or why there was none. */
function responseOf({ last_status_code: code, last_error: error }: AnyDelivery): string {
  const reason = error === null || error === 'http_status' ? '' : words(error);
  return [code, reason].filter(Boolean).join(', ') || '–';
}

/** What was sent to one receiver, and how it responded. */
const deliveryColumns: readonly Column<AnyDelivery>[] = [
  event,
  { name: 'State', cell: ({ status }) => <Badge tone={tones[status]}>{words(status)}</Badge> },
  ...attempted,
  {
    name: 'Delivered',
    muted: true,
    cell: ({ delivered_at, next_retry_at, status }) => {
      if (delivered_at !== null) return <TimeSince at={delivered_at} />;
      return next_retry_at === null || status === 'dead_letter' ? '–' : <TimeUntil at={next_retry_at} />;
    },
  },
];

interface DeliveryListProps {
  title: string;
  query: { data: { rows: readonly AnyDelivery[]; total: number } | undefined; error: Error | null; refetch(): unknown };
  empty: string;
  page: number;
  onPage: (page: number) => void;
  actions: ReactNode;
  /** Sends a dead letter again. */
  onReplay: ((id: string) => void) | undefined;
  columns: readonly Column<AnyDelivery>[];
}

function DeliveryList({ title, query, empty, page, onPage, actions, onReplay, columns }: DeliveryListProps) {
  const [shown, setShown] = useState<Delivery>();
  const buttons: Column<AnyDelivery> = {
    name: 'Actions',
    nameHidden: true,
    cell: (delivery) => (
      <>
        {/* A message to a channel is made when it is sent. */}
        {'webhook_id' in delivery ? (
          <Button look="quiet" icon={Eye} onClick={() => setShown(delivery)}>
            Show
          </Button>
        ) : null}
        {onReplay !== undefined && delivery.status === 'dead_letter' ? (
          <Button look="quiet" icon={RotateCw} onClick={() => onReplay(delivery.id)}>
            Replay
          </Button>
        ) : null}
      </>
    ),
  };
  return (
    <Panel title={title} flush actions={actions}>
      <Load query={query} what={`The ${title.toLowerCase()}`}>
        {({ rows, total }) =>
          total === 0 ? (
            <Empty title={`No ${title.toLowerCase()}`}>{empty}</Empty>
          ) : (
            <>
              <Table stacks label={title} rows={rows} keyOf={({ id }) => id} columns={[...columns, buttons]} />
              <Pager page={page} perPage={rowsPerPage} total={total} onPage={onPage} />
            </>
          )
        }
      </Load>
      <Dialog open={shown !== undefined} onClose={() => setShown(undefined)} title="What is sent" wide>
        {shown === undefined ? null : <Sent delivery={shown} />}
      </Dialog>
    </Panel>
  );
}

/** What every attempt of a delivery to a webhook sends. */
function Sent({ delivery: { id: delivery_id, webhook_id: id, event_type } }: { delivery: Delivery }) {
  const detail = useDelivery(id, delivery_id);
  return (
    <Load query={detail} what="The delivery">
      {({ event_id, attempts, body }) => (
        <>
          <CodeBlock
            label="Headers"
            text={`x-service-event: ${event_type}\nx-service-delivery: ${delivery_id}\nx-service-attempt: ${Math.max(1, attempts)}\nwebhook-id: ${event_id}`}
          />
          <p className="muted">Each attempt adds its own timestamp and signatures, which are not stored.</p>
          {body === null ? (
            <p>The body is made when it is sent.</p>
          ) : (
            <>
              <CodeBlock label="Body" text={readable(body)} />
              <CopyButton text={body} label="Copy the exact body" />
            </>
          )}
        </>
      )}
    </Load>
  );
}

/** A JSON text with line breaks. */
const readable = (text: string) => JSON.stringify(readJson(text), null, 2);

/** What was sent to a webhook or a channel. A message to a channel that is a dead letter can be sent again. */
export function Deliveries({ id, of }: { id: string; of: ReceiverKind }) {
  const [status, setStatus] = useState<DeliveryStatus>();
  const [page, setPage] = useState(0);
  const mayManage = useMay('manage');
  const deliveries = useDeliveries(id, of, status, page);
  const replay = useWrite(
    (client, delivery_id: string): Promise<unknown> =>
      of === 'webhook'
        ? client.replayDeadLetter({ params: { delivery_id } })
        : client.replayChannelDelivery({ params: { id, delivery_id } }),
    ['deliveries'],
    toastOutcome('Queued again.'),
  );
  return (
    <DeliveryList
      title="Deliveries"
      query={deliveries}
      empty="Send a test, or wait for the next event."
      page={page}
      onPage={setPage}
      columns={deliveryColumns}
      onReplay={mayManage ? (letter) => replay.mutate(letter) : undefined}
      actions={
        <SelectField
          label="State"
          labelHidden
          options={[{ value: '', label: 'all states' }, ...deliveryStatuses.map((value) => ({ value, label: words(value) }))]}
          value={status ?? ''}
          onChange={({ target }) => {
            setStatus(deliveryStatuses.find((one) => one === target.value));
            setPage(0);
          }}
        />
      }
    />
  );
}

/** The deliveries that have used up their attempts. */
export function DeadLetters() {
  useTitle('Dead letters');
  const mayManage = useMay('manage');
  const [page, setPage] = useState(0);
  const webhooks = useWebhooks().data;
  const receiver: Column<AnyDelivery> = {
    name: 'Webhook',
    cell: (letter) => {
      const webhook = 'webhook_id' in letter ? webhooks?.find(({ id }) => id === letter.webhook_id) : undefined;
      return webhook === undefined ? '–' : <Link to={`/webhooks/${webhook.id}`}>{webhook.url}</Link>;
    },
  };
  const letters = useDeadLetters(page);
  const replay = useWrite(
    (client, delivery_id: string) => client.replayDeadLetter({ params: { delivery_id } }),
    ['deliveries'],
    toastOutcome('Queued again.'),
  );
  const retry = useWrite((client) => client.retryAll({ body: { force: true } }), ['deliveries'], {
    ...toastOutcome(),
    onSuccess: ({ retried, remaining }) =>
      toast({ text: `${counted(retried, 'delivery', 'deliveries')} sent again, ${remaining} remaining.`, tone: 'good' }),
  });
  return (
    <DeliveryList
      title="Dead letters"
      query={letters}
      empty="A delivery that has used up its attempts is kept here until it is replayed."
      page={page}
      onPage={setPage}
      columns={[event, receiver, ...attempted]}
      onReplay={mayManage ? (id) => replay.mutate(id) : undefined}
      actions={
        mayManage && letters.data?.total ? (
          <Button busy={retry.isPending} onClick={() => retry.mutate()}>
            Retry all
          </Button>
        ) : undefined
      }
    />
  );
}
