import { useState } from 'react';
import { Link, Outlet } from 'react-router';

import { byId } from '../../../kit/web/app/by-id.tsx';
import { LoadedTable } from '../../../kit/web/app/loaded-table.tsx';
import { useTitle } from '../../../kit/web/app/title.ts';
import { Empty } from '../../../kit/web/components/feedback.tsx';
import { SelectField, TextField } from '../../../kit/web/components/field.tsx';
import { bind } from '../../../kit/web/components/form.tsx';
import { PageHeader, Panel } from '../../../kit/web/components/layout.tsx';
import { toast } from '../../../kit/web/components/toasts.tsx';
import type { Channel, ChannelEvent, ChannelKind, ChannelRequest } from '../../model/channel.ts';
import { channelEvents, channelKinds } from '../../model/constants.ts';
import { useChannels, useMay } from '../data/queries.ts';
import { CheckGroup } from '../parts/check-group.tsx';
import { Command, FormDialog, NewItem } from '../parts/form-dialog.tsx';
import { Name, TimeSince } from '../parts/texts.tsx';
import { ReceiverPage, ReceiverState } from './receiver.tsx';

/** The frame of the pages of channels. */
export const ChannelFrame = () => (
  <>
    <PageHeader title="Channels" />
    <Outlet />
  </>
);

/** The channels that notify people of questions, with a form for a new one. */
export function Channels() {
  useTitle('Channels');
  const channels = useChannels();
  const mayManage = useMay('manage');
  return (
    <Panel
      title="Notify people of questions"
      flush
      actions={mayManage ? <NewItem label="New channel">{(close) => <NewChannel onClose={close} />}</NewItem> : undefined}
    >
      <LoadedTable
        query={channels}
        empty={
          <Empty title="No channels yet">
            <p>A mail address or a Slack channel gets each question with a link that answers it. To create one:</p>
            <Command>service-cli channels create --kind email --target dana@example.com</Command>
          </Empty>
        }
        stacks
        label="Channels"
        keyOf={({ id }) => id}
        columns={[
          {
            name: 'Channel',
            by: ({ name, target }) => name ?? target,
            cell: ({ id, name, target }) => (
              <Link to={`/channels/${id}`}>
                <Name>{name ?? target}</Name>
              </Link>
            ),
          },
          { name: 'Kind', by: ({ kind }) => kind, cell: ({ kind }) => kind },
          { name: 'State', cell: (channel) => <ReceiverState of={channel} /> },
          { name: 'Questions for', by: ({ responder }) => responder, cell: ({ responder }) => <Name>{responder ?? 'anybody'}</Name> },
          { name: 'Events', cell: ({ events }) => events.join(', ') },
          {
            name: 'Created',
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

interface Draft {
  kind: ChannelKind;
  target: string;
  responder: string;
  events: ChannelEvent[];
}

function NewChannel({ onClose }: { onClose: () => void }) {
  const [draft, setDraft] = useState<Draft>({ kind: 'email', target: '', responder: '', events: ['asked', 'reminded'] });
  const set = (changes: Partial<Draft>) => setDraft({ ...draft, ...changes });
  const bound = bind(draft, set);
  const body: ChannelRequest = {
    kind: draft.kind,
    target: draft.target,
    events: draft.events,
    ...(draft.responder.trim() === '' ? {} : { responder: draft.responder.trim() }),
  };
  return (
    <FormDialog
      title="New channel"
      onClose={onClose}
      submit="Create"
      send={(client) => client.createChannel({ body })}
      refreshes={['channels']}
      onDone={({ warnings = [] }) => {
        toast({ text: 'The channel is created.', tone: 'good' });
        for (const text of warnings) toast({ text, tone: 'warn', durationMs: 20_000 });
      }}
    >
      <SelectField label="Kind" options={channelKinds} {...bound('kind')} />
      <TextField label={draft.kind === 'email' ? 'Mail address' : 'Address of an incoming webhook of Slack'} {...bound('target')} />
      <TextField label="Only questions for (optional)" hint="A responder. Answers by its links carry this name." {...bound('responder')} />
      <CheckGroup
        legend="Events: questions that are"
        options={channelEvents}
        chosen={draft.events}
        onChange={(events) => set({ events })}
      />
    </FormDialog>
  );
}

/** A channel: what can be done with it, and what was sent to it. */
export const ChannelPage = byId(({ id }) => (
  <ReceiverPage<Channel>
    of="channel"
    id={id}
    query={useChannels()}
    title={({ name, target }) => name ?? target}
    about={({ target, events, responder }) => `${target}, ${events.join(', ')}, for ${responder ?? 'anybody'}`}
  />
));
