import { type ReactNode, useState } from 'react';
import { useNavigate } from 'react-router';

import { Load } from '../../../kit/web/app/load.tsx';
import { useTitle } from '../../../kit/web/app/title.ts';
import { Button } from '../../../kit/web/components/button.tsx';
import { Badge, Callout } from '../../../kit/web/components/feedback.tsx';
import { Panel } from '../../../kit/web/components/layout.tsx';
import { toastOutcome } from '../../../kit/web/components/toasts.tsx';
import type { HandoffClient } from '../../client/client.ts';
import type { Channel } from '../../model/channel.ts';
import type { Webhook } from '../../model/webhook.ts';
import { type ReceiverKind, useMay, useWrite } from '../data/queries.ts';
import { FormDialog } from '../parts/form-dialog.tsx';
import { Name } from '../parts/texts.tsx';
import { Deliveries } from './deliveries.tsx';

/** What pages do with webhooks and channels alike. */
const kinds = {
  webhook: {
    name: 'Webhook',
    path: '/webhooks',
    test: (client: HandoffClient, id: string) => client.pingWebhook({ params: { id } }),
    activate: (client: HandoffClient, id: string, active: boolean) => client.patchWebhook({ params: { id }, body: { active } }),
    remove: (client: HandoffClient, id: string) => client.deleteWebhook({ params: { id } }),
    tested: 'A test delivery is on its way.',
    removal: 'It gets no more events, and its pending deliveries are cancelled. This cannot be undone.',
  },
  channel: {
    name: 'Channel',
    path: '/channels',
    test: (client: HandoffClient, id: string) => client.testChannel({ params: { id } }),
    activate: (client: HandoffClient, id: string, active: boolean) => client.patchChannel({ params: { id }, body: { active } }),
    remove: (client: HandoffClient, id: string) => client.deleteChannel({ params: { id } }),
    tested: 'A test message is on its way.',
    removal: 'It gets no more messages, and the answer links that were sent to it end. This cannot be undone.',
  },
} satisfies Record<ReceiverKind, unknown>;

interface ReceiverPageProps<T> {
  of: ReceiverKind;
  id: string;
  query: { data: T[] | undefined; error: Error | null; refetch(): unknown };
  title(item: T): string;
  about(item: T): string;
  /** Further things that can be done with it. */
  actions?(item: T): ReactNode;
}

/** A webhook or a channel: its state, what can be done with it, and what was sent to it. */
export function ReceiverPage<T extends Webhook | Channel>({ of, id, query, ...parts }: ReceiverPageProps<T>) {
  useTitle(kinds[of].name);
  return (
    <Load query={query} what={`The ${of}`}>
      {(found) => {
        const item = found.find((one) => one.id === id);
        return (
          <>
            {item === undefined ? <Callout tone="info">This {of} was removed.</Callout> : <Summary of={of} item={item} {...parts} />}
            <Deliveries id={id} of={of} />
          </>
        );
      }}
    </Load>
  );
}

function Summary<T extends Webhook | Channel>({
  of,
  item,
  title,
  about,
  actions,
}: Omit<ReceiverPageProps<T>, 'id' | 'query'> & { item: T }) {
  const { id, active } = item;
  const { path, tested, removal, ...calls } = kinds[of];
  const mayManage = useMay('manage');
  const navigate = useNavigate();
  const [removing, setRemoving] = useState(false);
  const test = useWrite((client): Promise<unknown> => calls.test(client, id), ['deliveries'], toastOutcome(tested));
  const activate = useWrite(
    (client, on: boolean): Promise<Webhook | Channel> => calls.activate(client, id, on),
    [`${of}s`],
    toastOutcome<Webhook | Channel>((changed) => `The ${of} is ${changed.active ? 'active' : 'paused'}.`),
  );
  return (
    <Panel
      title={<Name>{title(item)}</Name>}
      actions={
        mayManage ? (
          <>
            <Button busy={test.isPending} onClick={() => test.mutate()}>
              Test
            </Button>
            <Button busy={activate.isPending} onClick={() => activate.mutate(!active)}>
              {active ? 'Pause' : 'Activate'}
            </Button>
            {actions?.(item)}
            <Button onClick={() => setRemoving(true)}>Remove</Button>
          </>
        ) : undefined
      }
    >
      <p>
        <ReceiverState of={item} /> <span className="muted">{about(item)}</span>
      </p>
      {removing ? (
        <FormDialog
          title={`Remove the ${of}`}
          onClose={() => setRemoving(false)}
          submit="Remove"
          danger
          send={(client) => calls.remove(client, id)}
          refreshes={[`${of}s`]}
          onDone={() => void navigate(path)}
        >
          <p>{removal}</p>
        </FormDialog>
      ) : null}
    </Panel>
  );
}

/** Whether anything is sent to a webhook or a channel, and why not. */
export function ReceiverState({ of: { active, disabled_reason } }: { of: Webhook | Channel }) {
  if (active) return <Badge tone="good">active</Badge>;
  if (disabled_reason === null) return <Badge>paused</Badge>;
  return <Badge tone="bad">disabled: {disabled_reason}</Badge>;
}
