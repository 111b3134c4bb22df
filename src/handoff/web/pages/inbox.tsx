import { Bell, Keyboard } from 'lucide-react';
import { memo, type RefObject, useEffect, useRef, useState } from 'react';
import { Link, useNavigate } from 'react-router';
import { Load } from '../../../kit/web/app/load.tsx';
import { useTitle } from '../../../kit/web/app/title.ts';
import { Button, LinkButton } from '../../../kit/web/components/button.tsx';
import { Dialog } from '../../../kit/web/components/dialog.tsx';
import { Badge, Callout, Empty } from '../../../kit/web/components/feedback.tsx';
import { CheckField, SelectField } from '../../../kit/web/components/field.tsx';
import { Fields } from '../../../kit/web/components/form.tsx';
import { PageHeader, Panel } from '../../../kit/web/components/layout.tsx';
import { counted } from '../../../kit/web/format.ts';
import { useMedia } from '../../../kit/web/media.ts';
import { keptText, sharedValue } from '../../../kit/web/shared-value.ts';
import { beginningOf } from '../../../kit/wording.ts';
import { askerName } from '../../model/asker.ts';
import type { PacketSummary } from '../../model/packet.ts';
import { allows } from '../../rules/packet-life.ts';
import { useFilters } from '../data/filters.ts';
import { askedAt, maxQuestions, useInbox, useNotifiesNobody, usePacket } from '../data/queries.ts';
import type { AnswerKeys } from '../parts/answer-form.tsx';
import { Command } from '../parts/form-dialog.tsx';
import { InboxTabs } from '../parts/inbox-tabs.tsx';
import { Background, Question, shownOf } from '../parts/question.tsx';
import { Name, TimeLeft, TimeSince, Times } from '../parts/texts.tsx';
import styles from './inbox.module.css';

/** What the inbox can be filtered by, with the values of a packet. */
const filters = {
  responder: ({ hitl }: PacketSummary) => [hitl?.responder ?? 'nobody in particular'],
  agent: ({ metadata }: PacketSummary) => [metadata.source_agent.id],
  tag: ({ metadata }: PacketSummary) => metadata.tags,
};
const filterNames = Object.keys(filters) as (keyof typeof filters)[];
const labels = { responder: 'Asked', agent: 'By agent', tag: 'Tag' };

/** The open questions of the tenant, oldest first. */
export function Inbox() {
  const inbox = useInbox();
  const notifiesNobody = useNotifiesNobody();
  const [help, setHelp] = useState(false);
  const { params, set, clear } = useFilters();
  const number = inbox.data?.length;
  useTitle(number ? `(${number}) Inbox` : 'Inbox');
  // The value in the address is a choice even if only answered questions have it.
  const choices = (name: keyof typeof filters) =>
    [...new Set([params.get(name) ?? [], ...(inbox.data ?? []).map(filters[name])].flat())].filter(Boolean).sort();
  const shown = inbox.data?.filter((packet) =>
    filterNames.every((name) => params.get(name) === null || filters[name](packet).includes(params.get(name)!)),
  );
  return (
    <>
      <PageHeader
        title="Inbox"
        subtitle={number === undefined ? ' ' : counted(number, 'open question')}
        actions={
          <>
            <NotifyButton />
            <Button icon={Keyboard} onClick={() => setHelp(true)}>
              Shortcuts
            </Button>
          </>
        }
      />
      <InboxTabs />
      {notifiesNobody ? (
        <Callout tone="info" actions={<LinkButton to="/channels">Channels</LinkButton>}>
          Nobody is notified of new questions by mail or Slack. They only appear here.
        </Callout>
      ) : null}
      {number === maxQuestions ? <Callout tone="info">The oldest {maxQuestions} questions are shown.</Callout> : null}
      <Load query={{ ...inbox, data: shown }} what="The inbox" height="3.5rem">
        {(packets) => (
          <>
            {number === 0 ? null : (
              <div className={styles.filters}>
                <Fields min="9rem">
                  {filterNames.map((name) => (
                    <SelectField
                      key={name}
                      label={labels[name]}
                      value={params.get(name) ?? ''}
                      options={[{ value: '', label: 'all' }, ...choices(name)]}
                      onChange={({ target }) => set(name, target.value)}
                    />
                  ))}
                </Fields>
              </div>
            )}
            {packets.length > 0 ? (
              <Questions packets={packets} onHelp={() => setHelp(true)} />
            ) : (
              <NoQuestions isFiltered={number !== 0} onClear={clear} />
            )}
          </>
        )}
      </Load>
      <Help open={help} onClose={() => setHelp(false)} />
    </>
  );
}

/** The list, and beside it the selected question. */
function Questions({ packets, onHelp }: { packets: readonly PacketSummary[]; onHelp: () => void }) {
  const isWide = useMedia('(min-width: 60rem)');
  const navigate = useNavigate();
  const [selected, setSelected] = useState<string>();
  const lastIndex = useRef(0);
  const list = useRef<HTMLUListElement>(null);
  const form = useRef<AnswerKeys>(null);
  const found = packets.findIndex(({ id }) => id === selected);
  // The question after one that is no longer open takes its place.
  const index = found === -1 ? Math.min(lastIndex.current, packets.length - 1) : found;
  const current = packets[index]!;
  useEffect(() => {
    lastIndex.current = index;
  }, [index]);

  useKeys({
    move(step) {
      const next = Math.max(0, Math.min(packets.length - 1, index + step));
      setSelected(packets[next]!.id);
      list.current?.querySelectorAll('a')[next]?.focus();
    },
    choose: (number) => form.current?.choose(number),
    enter: () => {
      if (!isWide || !form.current?.send()) void navigate(`/packets/${current.id}`);
    },
    help: onHelp,
  });

  return (
    <div className={styles.columns}>
      <Panel flush>
        <ul ref={list} className={styles.list} aria-label="Open questions">
          {packets.map((packet) => (
            <Item key={packet.id} packet={packet} isCurrent={isWide && packet.id === current.id} onSelect={setSelected} isShown={isWide} />
          ))}
        </ul>
      </Panel>
      {isWide ? <Selected key={current.id} id={current.id} keys={form} /> : null}
    </div>
  );
}

interface ItemProps {
  packet: PacketSummary;
  isCurrent: boolean;
  /** Whether the selected question is shown beside the list; otherwise the link leads to the packet. */
  isShown: boolean;
  onSelect: (id: string) => void;
}

/** A question in the list. Of a thousand, a key press renders the two that change. */
const Item = memo(function Item({ packet, isCurrent, isShown, onSelect }: ItemProps) {
  return (
    <li className={styles.row}>
      <Link
        to={`/packets/${packet.id}`}
        className={styles.item!}
        aria-current={isCurrent ? 'true' : undefined}
        // What Enter answers or opens is where the focus is.
        onFocus={() => onSelect(packet.id)}
        onClick={(event) => {
          if (!isShown || event.metaKey || event.ctrlKey || event.detail === 0) return;
          event.preventDefault();
          onSelect(packet.id);
        }}
      >
        <span className={styles.itemHead}>
          <Name>{askerName(packet)}</Name>
          <TimeSince at={askedAt(packet)} />
        </span>
        <span className={styles.text} dir="auto">
          {packet.hitl?.question}
        </span>
        <span className={styles.about} dir="auto">
          {beginningOf(packet.context.summary, 200)}
        </span>
        <span className={styles.itemHead}>
          <TimeLeft until={packet.hitl?.expires_at ?? null} />
          {packet.due_at === undefined ? null : (
            <span>
              packet <Times of={packet} />
            </span>
          )}
          {packet.hitl?.responder === undefined ? null : <Name>{packet.hitl.responder}</Name>}
        </span>
      </Link>
    </li>
  );
});

function Selected({ id, keys }: { id: string; keys: RefObject<AnswerKeys | null> }) {
  const packet = usePacket(id);
  return (
    <div className={styles.selected}>
      <Load query={packet} what="The question">
        {(found) => (
          <>
            {found.hitl !== null && allows(found, 'respond') ? (
              <Question packet={{ ...found, hitl: found.hitl }} keys={keys} />
            ) : (
              <>
                <Callout tone="info">This question is no longer open.</Callout>
                <Background shown={shownOf(found)} />
              </>
            )}
            <div>
              <LinkButton to={`/packets/${id}`}>Open the whole packet</LinkButton>
            </div>
          </>
        )}
      </Load>
    </div>
  );
}

interface Keys {
  move: (step: 1 | -1) => void;
  choose: (number: number) => void;
  enter: () => unknown;
  help: () => void;
}

/** Whether the keys of the inbox are in use, in this browser: speech input may press them by mistake (WCAG 2.1.4). */
const keptKeys = keptText('localStorage', 'baton.keys');
const usesKeys = sharedValue(keptKeys.read() !== 'off');

function chooseKeys(isOn: boolean): void {
  keptKeys.write(isOn ? null : 'off');
  usesKeys.set(isOn);
}

/** Calls for the keys of the inbox, unless they are switched off, typed into a field or belong to a dialog. */
function useKeys(keys: Keys): void {
  const latest = useRef(keys);
  useEffect(() => {
    latest.current = keys;
  });
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const { target } = event;
      if (!(target instanceof Element)) return;
      const isTyping = target.closest('input, textarea, select, [role=dialog], [role=menu]') !== null;
      if (!usesKeys.get() || isTyping || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      const { move, choose, enter, help } = latest.current;
      if (event.key === 'j') move(1);
      else if (event.key === 'k') move(-1);
      else if (event.key === '?') help();
      else if (/^[1-9]$/.test(event.key)) choose(Number(event.key));
      else if (event.key === 'Enter' && target.closest(`button, a:not(.${styles.item})`) === null) enter();
      else return;
      event.preventDefault();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);
}

const keyHelp = [
  ['j, k', 'the next or the previous question'],
  ['1 to 9', 'choose an option'],
  ['Enter', 'send the chosen option; without one, open the packet'],
  ['?', 'this list'],
] as const;

function Help({ open, onClose }: { open: boolean; onClose: () => void }) {
  return (
    <Dialog open={open} onClose={onClose} title="Keys of the inbox">
      <dl className={styles.keys}>
        {keyHelp.map(([key, meaning]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
      <CheckField
        label="Use these keys"
        hint="Switch them off if you dictate, or press keys by mistake."
        checked={usesKeys.use()}
        onChange={({ target }) => chooseKeys(target.checked)}
      />
    </Dialog>
  );
}

function NoQuestions({ isFiltered, onClear }: { isFiltered: boolean; onClear: () => void }) {
  if (isFiltered)
    return (
      <Panel>
        <Empty title="No open question matches the filters" actions={<Button onClick={onClear}>Show all</Button>} />
      </Panel>
    );
  return (
    <Panel>
      <Empty title="No open questions">
        <p>A question appears here when an agent moves a packet to awaiting_human. To try it:</p>
        <Command>{'service-cli packets ask PACKET_ID --question "Refund 42 EUR?" --reason "Above the limit"'}</Command>
      </Empty>
    </Panel>
  );
}

/** A button that asks the browser for the permission to notify. */
function NotifyButton() {
  const [permission, setPermission] = useState(() => ('Notification' in globalThis ? Notification.permission : 'denied'));
  if (permission === 'granted') return <Badge tone="good">Notifications on</Badge>;
  if (permission === 'denied') return null;
  const ask = () => void Notification.requestPermission().then(setPermission, () => setPermission('denied'));
  return (
    <Button icon={Bell} onClick={ask}>
      Notify me
    </Button>
  );
}
