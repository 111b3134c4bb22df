import { Plus } from 'lucide-react';
import { useState } from 'react';
import { Link, useNavigate, useParams } from 'react-router';

import { Load } from '../../../kit/web/app/load.tsx';
import { useTitle } from '../../../kit/web/app/title.ts';
import { Button } from '../../../kit/web/components/button.tsx';
import { Callout, Empty } from '../../../kit/web/components/feedback.tsx';
import { CheckField, SelectField, TextField } from '../../../kit/web/components/field.tsx';
import { Panel } from '../../../kit/web/components/layout.tsx';
import { Table } from '../../../kit/web/components/table.tsx';
import { useToast } from '../../../kit/web/components/toasts.tsx';
import type { Channel, ChannelKind, ChannelRequest } from '../../model/channel.ts';
import { channelEvents, channelKinds } from '../../model/constants.ts';
import { useAnswer, useMay, useWrite } from '../data/queries.ts';
import { Command, FormDialog } from '../parts/form-dialog.tsx';
import { Ago, Name } from '../parts/texts.tsx';
import { Deliveries } from './deliveries.tsx';
import styles from './webhooks.module.css';
import { WebhookState } from './webhooks.tsx';

const useChannels = () => useAnswer(['channels'], (client, signal) => client.listChannels({ signal }));

/** The channels that tell people of questions, with a form for a new one. */
export function Channels() {
  useTitle('Channels');
  const channels = useChannels();
  const mayManage = useMay('manage');
  const [making, setMaking] = useState(false);
  return (
    <>
      <Panel
        title="Tell people of questions"
        flush
        actions={
          mayManage ? (
            <Button icon={Plus} onClick={() => setMaking(true)}>
              New channel
            </Button>
          ) : undefined
        }
      >
        <Load query={channels} what="The channels">
          {(found) =>
            found.length === 0 ? (
              <Empty title="No channels yet">
                <p>A mail address or a Slack channel gets each question with a link that answers it. To create one:</p>
                <Command>service-cli channels create --kind email --target dana@example.com</Command>
              </Empty>
            ) : (
              <Table
                label="Channels"
                rows={found}
                keyOf={({ id }) => id}
                columns={[
                  {
                    name: 'Channel',
                    cell: ({ id, name, target }) => (
                      <Link to={`/webhooks/channels/${id}`}>
                        <Name>{name ?? target}</Name>
                      </Link>
                    ),
                  },
                  { name: 'Kind', cell: ({ kind }) => kind },
                  { name: 'State', cell: (channel) => <WebhookState webhook={channel} /> },
                  { name: 'Questions for', cell: ({ responder }) => <Name>{responder ?? 'anybody'}</Name> },
                  { name: 'Tells of', cell: ({ events }) => events.join(', ') },
                  { name: 'Created', muted: true, tabular: true, cell: ({ created_at }) => <Ago at={created_at} /> },
                ]}
              />
            )
          }
        </Load>
      </Panel>
      {making ? <NewChannel onClose={() => setMaking(false)} /> : null}
    </>
  );
}

function NewChannel({ onClose }: { onClose: () => void }) {
  const toast = useToast();
  const [draft, setDraft] = useState({ kind: 'email', target: '', responder: '', events: ['asked', 'reminded'] as string[] });
  const set = (changes: Partial<typeof draft>) => setDraft({ ...draft, ...changes });
  const create = useWrite((client, body: ChannelRequest) => client.createChannel({ body }), 'channels');
  const request = {
    kind: draft.kind as ChannelKind,
    target: draft.target,
    events: channelEvents.filter((event) => draft.events.includes(event)),
    ...(draft.responder.trim() === '' ? {} : { responder: draft.responder.trim() }),
  };
  return (
    <FormDialog
      open
      title="New channel"
      onClose={onClose}
      submit="Create"
      request={create}
      onSubmit={() =>
        create.mutate(request, {
          onSuccess() {
            toast({ text: 'The channel is created.', tone: 'good' });
            onClose();
          },
        })
      }
    >
      <SelectField label="Kind" options={channelKinds} value={draft.kind} onChange={({ target }) => set({ kind: target.value })} />
      <TextField
        label={draft.kind === 'email' ? 'Mail address' : 'Address of an incoming webhook of Slack'}
        value={draft.target}
        onChange={({ target }) => set({ target: target.value })}
      />
      <TextField
        label="Only questions for (optional)"
        hint="A responder. Answers by its links carry this name."
        value={draft.responder}
        onChange={({ target }) => set({ responder: target.value })}
      />
      <fieldset className={styles.events}>
        <legend>Tells of questions that are</legend>
        {channelEvents.map((event) => (
          <CheckField
            key={event}
            label={event}
            checked={draft.events.includes(event)}
            onChange={({ target }) =>
              set({ events: target.checked ? [...draft.events, event] : draft.events.filter((one) => one !== event) })
            }
          />
        ))}
      </fieldset>
    </FormDialog>
  );
}

/** A channel: what can be done with it, and what was sent to it. */
export function ChannelPage() {
  const { id = '' } = useParams();
  useTitle('Channel');
  const channels = useChannels();
  return (
    <Load query={channels} what="The channel">
      {(found) => {
        const channel = found.find((one) => one.id === id);
        return (
          <>
            {channel === undefined ? <Callout tone="info">This channel was removed.</Callout> : <Summary channel={channel} />}
            <Deliveries id={id} of="channel" />
          </>
        );
      }}
    </Load>
  );
}

function Summary({ channel }: { channel: Channel }) {
  const { id, active, name, target, events, responder } = channel;
  const mayManage = useMay('manage');
  const navigate = useNavigate();
  const toast = useToast();
  const [removing, setRemoving] = useState(false);
  const said = (text: string) => ({
    onSuccess: () => toast({ text, tone: 'good' as const }),
    onError: ({ message }: Error) => toast({ text: message, tone: 'bad' as const }),
  });
  const test = useWrite((client, _: undefined) => client.testChannel({ params: { id } }), 'deliveries');
  const change = useWrite((client, body: { active: boolean }) => client.patchChannel({ params: { id }, body }), 'channels');
  const remove = useWrite((client, _: undefined) => client.deleteChannel({ params: { id } }), 'channels');
  return (
    <Panel
      title={<Name>{name ?? target}</Name>}
      actions={
        mayManage ? (
          <>
            <Button busy={test.isPending} onClick={() => test.mutate(undefined, said('A test message is on its way.'))}>
              Test
            </Button>
            <Button
              busy={change.isPending}
              onClick={() => change.mutate({ active: !active }, said(active ? 'The channel is paused.' : 'The channel is active.'))}
            >
              {active ? 'Pause' : 'Activate'}
            </Button>
            <Button onClick={() => setRemoving(true)}>Remove</Button>
          </>
        ) : undefined
      }
    >
      <p>
        <WebhookState webhook={channel} />{' '}
        <span className="muted">
          {target}, {events.join(', ')}, for {responder ?? 'anybody'}
        </span>
      </p>
      <FormDialog
        open={removing}
        title="Remove the channel"
        onClose={() => setRemoving(false)}
        submit="Remove"
        danger
        request={remove}
        onSubmit={() => remove.mutate(undefined, { onSuccess: () => void navigate('/webhooks/channels') })}
      >
        <p>It gets no more messages, and the answer links that were sent to it end. This can not be undone.</p>
      </FormDialog>
    </Panel>
  );
}
