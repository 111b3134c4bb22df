import { Ban, Hand, Link2, type LucideIcon, Trash2, Undo2 } from 'lucide-react';
import { useState } from 'react';

import { Load } from '../../../kit/web/app/load.tsx';
import { Button } from '../../../kit/web/components/button.tsx';
import { Badge } from '../../../kit/web/components/feedback.tsx';
import { SelectField, TextField } from '../../../kit/web/components/field.tsx';
import { bind } from '../../../kit/web/components/form.tsx';
import { Panel } from '../../../kit/web/components/layout.tsx';
import { toast, toastOutcome } from '../../../kit/web/components/toasts.tsx';
import { keptText } from '../../../kit/web/shared-value.ts';
import type { HandoffClient } from '../../client/client.ts';
import type { Packet } from '../../model/packet.ts';
import { allows, type Verb } from '../../rules/packet-life.ts';
import { useAnswerLinks, useMay, useOwnKey, useWrite } from '../data/queries.ts';
import { FormDialog, ShownOnce } from './form-dialog.tsx';
import styles from './packet-commands.module.css';
import { TimeLeft, TimeSince } from './texts.tsx';

const kinds = ['claim', 'release', 'fail', 'delete'] as const;
type Kind = (typeof kinds)[number];

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

/** The id of the agent for which a packet was last claimed in this browser. */
const keptAgent = keptText('localStorage', 'baton.agent');

/** The commands that the status of a packet allows. */
export function Commands({ packet }: { packet: Packet }) {
  const mayWork = useMay('work');
  const [kind, setKind] = useState<Kind>();
  if (!mayWork) return null;
  return (
    <>
      {kinds
        .filter((name) => allows(packet, commands[name].verb))
        .map((name) => (
          <Button key={name} icon={commands[name].icon} onClick={() => setKind(name)}>
            {commands[name].label}
          </Button>
        ))}
      {kind === undefined ? null : <CommandDialog key={kind} kind={kind} packet={packet} onClose={() => setKind(undefined)} />}
    </>
  );
}

function CommandDialog({ kind, packet, onClose }: { kind: Kind; packet: Packet; onClose: () => void }) {
  const own = useOwnKey();
  const [agent, setAgent] = useState(() => keptAgent.read() ?? '');
  const { label, says, done } = commands[kind];
  const send = (client: HandoffClient): Promise<unknown> => {
    const headers = { 'if-match': `"${packet.revision}"` };
    const params = { id: packet.id };
    const holder = packet.claimed_by === null ? {} : { 'x-agent-id': packet.claimed_by.agent_id };
    if (kind === 'claim') return client.claimPacket({ params, body: { agent_id: agent.trim() }, headers });
    if (kind === 'release') return client.releasePacket({ params, headers: { ...headers, ...(own?.admin ? {} : holder) } });
    if (kind === 'fail') return client.patchPacket({ params, body: { status: 'failed' }, headers });
    return client.deletePacket({ params, headers });
  };
  return (
    <FormDialog
      title={`${label} the packet`}
      onClose={onClose}
      submit={label}
      danger={kind === 'fail' || kind === 'delete'}
      send={send}
      refreshes={['packets']}
      onDone={() => {
        if (kind === 'claim') keptAgent.write(agent.trim());
        toast({ text: done, tone: 'good' });
      }}
    >
      <p>{says}</p>
      {kind !== 'claim' ? null : own?.agents ? (
        <SelectField label="Agent" options={['', ...own.agents]} value={agent} onChange={({ target }) => setAgent(target.value)} />
      ) : (
        <TextField label="Agent id" value={agent} onChange={({ target }) => setAgent(target.value)} />
      )}
    </FormDialog>
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
  const mayCreate = useMay('respond') && allows(packet, 'respond');
  const links = useAnswerLinks(id);
  const [open, setOpen] = useState(false);
  const [url, setUrl] = useState<string>();
  const revoke = useWrite((client, link: string) => client.deleteAnswerLink({ params: { id: link } }), ['links', id], toastOutcome());
  if (links.data?.length === 0 && !mayCreate) return null;
  return (
    <Panel
      title="Answer links"
      actions={
        mayCreate ? (
          <Button icon={Link2} onClick={() => setOpen(true)}>
            Make a link
          </Button>
        ) : undefined
      }
    >
      <Load query={links} what="The answer links" lines={1}>
        {(found) =>
          found.length === 0 ? (
            <p className="muted">A link opens a page with this question alone, without a key.</p>
          ) : (
            <ul className={styles.links}>
              {found.map(({ id: link, responder, status, created_at, expires_at }) => (
                <li key={link}>
                  <Badge tone={status === 'open' ? 'info' : status === 'answered' ? 'good' : 'neutral'}>{status}</Badge>
                  <bdi>{responder ?? 'for anybody'}</bdi>
                  <TimeSince at={created_at} />
                  {status === 'open' ? (
                    <>
                      <TimeLeft until={expires_at} />
                      <Button busy={revoke.isPending && revoke.variables === link} onClick={() => revoke.mutate(link)}>
                        Revoke
                      </Button>
                    </>
                  ) : null}
                </li>
              ))}
            </ul>
          )
        }
      </Load>
      {open ? <NewLink packet={packet} onClose={() => setOpen(false)} onCreated={setUrl} /> : null}
      <ShownOnce title="The answer link" secret={url} onClose={() => setUrl(undefined)}>
        Anyone with this address can answer the question. It is shown only once.
      </ShownOnce>
    </Panel>
  );
}

interface NewLinkProps {
  packet: Packet;
  onClose: () => void;
  onCreated: (url: string) => void;
}

function NewLink({ packet: { id, hitl }, onClose, onCreated }: NewLinkProps) {
  const [draft, setDraft] = useState({ responder: hitl?.responder ?? '', seconds: '86400' });
  const bound = bind(draft, (changes) => setDraft({ ...draft, ...changes }));
  const responder = draft.responder.trim();
  const body = { expires_in: Number(draft.seconds), ...(responder === '' ? {} : { responder }) };
  return (
    <FormDialog
      title="Make an answer link"
      onClose={onClose}
      submit="Make the link"
      send={(client) => client.createAnswerLink({ params: { id }, body })}
      refreshes={['links', id]}
      onDone={({ url }) => onCreated(url)}
    >
      <TextField
        label="For whom (optional)"
        hint="The answer carries this name. Without it the person enters one."
        {...bound('responder')}
      />
      <SelectField label="Valid for" options={periods} {...bound('seconds')} />
    </FormDialog>
  );
}
