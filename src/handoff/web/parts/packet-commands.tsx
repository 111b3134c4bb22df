import { Ban, Hand, Link2, type LucideIcon, Trash2, Undo2 } from 'lucide-react';
import { useState } from 'react';

import { Button } from '../../../kit/web/components/button.tsx';
import { Badge } from '../../../kit/web/components/feedback.tsx';
import { SelectField, TextField } from '../../../kit/web/components/field.tsx';
import { bind } from '../../../kit/web/components/form.tsx';
import { Panel } from '../../../kit/web/components/layout.tsx';
import { toast } from '../../../kit/web/components/toasts.tsx';
import { keptText } from '../../../kit/web/shared-value.ts';
import type { Packet } from '../../model/packet.ts';
import { allows, type Verb } from '../../rules/packet-life.ts';
import { useAnswer, useMay, useOwnKey, useWrite } from '../data/queries.ts';
import { FormDialog, ShownOnce } from './form-dialog.tsx';
import styles from './packet-commands.module.css';
import { Ago, TimeLeft } from './texts.tsx';

type Kind = 'claim' | 'release' | 'fail' | 'delete';

/** The commands, each with what it does and the text of its button. A claim also asks for an agent. */
const commands: Record<Kind, { verb: Verb; label: string; icon: LucideIcon; says: string; done: string }> = {
  claim: { verb: 'claim', label: 'Claim', icon: Hand, says: 'The packet is assigned to this agent.', done: 'The packet is claimed.' },
  release: {
    verb: 'release',
    label: 'Release',
    icon: Undo2,
    says: 'The packet goes back to created, and any agent may claim it.',
    done: 'The packet is released.',
  },
  fail: {
    verb: 'fail',
    label: 'Fail',
    icon: Ban,
    says: 'The packet ends as failed. This cannot be undone.',
    done: 'The packet has failed.',
  },
  delete: {
    verb: 'delete',
    label: 'Delete',
    icon: Trash2,
    says: 'The packet becomes expired and stays readable. This cannot be undone.',
    done: 'The packet is deleted.',
  },
};

/** The id of the agent that a person claimed as last, in this browser. */
const keptAgent = keptText('localStorage', 'baton.agent');

/** The commands that the status of a packet allows. */
export function Commands({ packet }: { packet: Packet }) {
  const mayWork = useMay('work');
  const own = useOwnKey();
  const [kind, setKind] = useState<Kind>();
  const [agent, setAgent] = useState(() => keptAgent.read() ?? '');
  const command = useWrite((client, asked: Kind): Promise<unknown> => {
    const headers = { 'if-match': `"${packet.revision}"` };
    const params = { id: packet.id };
    const holder = packet.claimed_by === null ? {} : { 'x-agent-id': packet.claimed_by.agent_id };
    if (asked === 'claim') return client.claimPacket({ params, body: { agent_id: agent.trim() }, headers });
    if (asked === 'release') return client.releasePacket({ params, headers: { ...headers, ...(own?.admin ? {} : holder) } });
    if (asked === 'fail') return client.patchPacket({ params, body: { status: 'failed' }, headers });
    return client.deletePacket({ params, headers });
  }, 'packets');
  if (!mayWork) return null;
  const close = () => {
    setKind(undefined);
    command.reset();
  };
  const chosen = kind && commands[kind];
  return (
    <>
      {(Object.keys(commands) as Kind[])
        .filter((name) => allows(packet, commands[name].verb))
        .map((name) => (
          <Button key={name} icon={commands[name].icon} onClick={() => setKind(name)}>
            {commands[name].label}
          </Button>
        ))}
      <FormDialog
        title={`${chosen?.label ?? ''} the packet`}
        open={kind !== undefined}
        onClose={close}
        submit={chosen?.label ?? ''}
        danger={kind === 'fail' || kind === 'delete'}
        request={command}
        onSubmit={() =>
          command.mutate(kind!, {
            onSuccess() {
              if (kind === 'claim') keptAgent.write(agent.trim());
              toast({ text: chosen!.done, tone: 'good' });
              close();
            },
          })
        }
      >
        <p>{chosen?.says}</p>
        {kind !== 'claim' ? null : own?.agents ? (
          <SelectField label="Agent" options={['', ...own.agents]} value={agent} onChange={({ target }) => setAgent(target.value)} />
        ) : (
          <TextField label="Agent id" value={agent} onChange={({ target }) => setAgent(target.value)} />
        )}
      </FormDialog>
    </>
  );
}

const periods = [
  { value: '3600', label: 'an hour' },
  { value: '86400', label: 'a day' },
  { value: '604800', label: 'a week' },
  { value: '2592000', label: '30 days' },
];

/** The answer links of a packet's question; the URL of a new one is shown once. */
export function AnswerLinks({ packet }: { packet: Packet }) {
  const { id } = packet;
  const mayMake = useMay('respond') && allows(packet, 'respond');
  const links = useAnswer(['links', id], (client, signal) => client.listAnswerLinks({ params: { id }, signal })).data ?? [];
  const [open, setOpen] = useState(false);
  const [url, setUrl] = useState<string>();
  const [draft, setDraft] = useState({ responder: packet.hitl?.responder ?? '', seconds: '86400' });
  const bound = bind(draft, (changes) => setDraft({ ...draft, ...changes }));
  const make = useWrite(
    (client, { responder, seconds }: typeof draft) =>
      client.createAnswerLink({ params: { id }, body: { expires_in: Number(seconds), ...(responder.trim() === '' ? {} : { responder }) } }),
    'links',
    id,
  );
  const revoke = useWrite((client, link: string) => client.deleteAnswerLink({ params: { id: link } }), 'links', id);
  if (links.length === 0 && !mayMake) return null;
  return (
    <Panel
      title="Answer links"
      actions={
        mayMake ? (
          <Button icon={Link2} onClick={() => setOpen(true)}>
            Make a link
          </Button>
        ) : undefined
      }
    >
      {links.length === 0 ? <p className="muted">A link opens a page with this question alone, without a key.</p> : null}
      <ul className={styles.links}>
        {links.map(({ id: link, responder, status, created_at, expires_at }) => (
          <li key={link}>
            <Badge tone={status === 'open' ? 'info' : 'neutral'}>{status}</Badge>
            <bdi>{responder ?? 'for anybody'}</bdi>
            <Ago at={created_at} />
            {status === 'open' ? (
              <>
                <TimeLeft until={expires_at} />
                <Button busy={revoke.isPending} onClick={() => revoke.mutate(link)}>
                  Revoke
                </Button>
              </>
            ) : null}
          </li>
        ))}
      </ul>
      <FormDialog
        title="Make an answer link"
        open={open}
        onClose={() => setOpen(false)}
        submit="Make the link"
        request={make}
        onSubmit={() =>
          make.mutate(draft, {
            onSuccess(made) {
              setOpen(false);
              setUrl(made.url);
            },
          })
        }
      >
        <TextField
          label="For whom (optional)"
          hint="The answer carries this name. Without it the person enters one."
          {...bound('responder')}
        />
        <SelectField label="Valid for" options={periods} {...bound('seconds')} />
      </FormDialog>
      <ShownOnce title="The answer link" secret={url} onClose={() => setUrl(undefined)}>
        Anyone with this address can answer the question. It is not shown again.
      </ShownOnce>
    </Panel>
  );
}
