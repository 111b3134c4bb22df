import { Fragment, type ReactNode, useState } from 'react';
import { readJson } from '../../../kit/json.ts';
import { byId } from '../../../kit/web/app/by-id.tsx';
import { Load } from '../../../kit/web/app/load.tsx';
import { useTitle } from '../../../kit/web/app/title.ts';
import { Button } from '../../../kit/web/components/button.tsx';
import { CodeBlock, CopyButton } from '../../../kit/web/components/code.tsx';
import { Badge } from '../../../kit/web/components/feedback.tsx';
import { PageHeader, Panel } from '../../../kit/web/components/layout.tsx';
import { count, moment } from '../../../kit/web/format.ts';
import { beginningOf } from '../../../kit/wording.ts';
import type { Packet } from '../../model/packet.ts';
import { allows } from '../../rules/packet-life.ts';
import { questionAtChange } from '../../rules/question-state.ts';
import { usePacket } from '../data/queries.ts';
import { Markdown } from '../parts/markdown.tsx';
import { PacketChain } from '../parts/packet-chain.tsx';
import { AnswerLinks, Commands } from '../parts/packet-commands.tsx';
import { Background, Question, shownOf, textOf } from '../parts/question.tsx';
import { Name, Prose, StatusBadge, TimeLeft, TimeSince, Times } from '../parts/texts.tsx';
import { Timeline } from '../parts/timeline.tsx';
import styles from './packet.module.css';

/** A packet with all that it carries, its history and its chain. */
export const PacketPage = byId(function PacketById({ id }) {
  const packet = usePacket(id);
  useTitle(packet.data?.hitl && allows(packet.data, 'respond') ? beginningOf(packet.data.hitl.question, 80) : 'Packet');
  return (
    <Load query={packet} what="The packet">
      {(found) => (
        <>
          <PageHeader
            title="Packet"
            subtitle={
              <span className={styles.line}>
                <StatusBadge status={found.status} />
                <Badge>{found.metadata.priority}</Badge>
                <Times of={found} />
                {found.metadata.tags.map((tag) => (
                  <Badge key={tag}>{tag}</Badge>
                ))}
                <code>{found.id}</code>
              </span>
            }
            actions={<Commands packet={found} />}
          />
          {found.hitl !== null && allows(found, 'respond') ? <Question packet={{ ...found, hitl: found.hitl }} /> : null}
          <div className={styles.columns}>
            <div className={styles.column}>
              {allows(found, 'respond') ? null : (
                <>
                  <Answered packet={found} />
                  <Background shown={shownOf(found)} />
                </>
              )}
              <Content packet={found} />
            </div>
            <div className={styles.column}>
              <Facts packet={found} />
              {found.hitl === null ? null : <AnswerLinks packet={found} />}
              <PacketChain packet={found} />
              <Timeline packet={found} />
            </div>
          </div>
          <Raw packet={found} />
        </>
      )}
    </Load>
  );
});

/** A question that is not open: its answer with what the person was shown, if there is one. */
function Answered({ packet }: { packet: Packet }) {
  const latest = questionAtChange(packet);
  if (latest.state === 'none') return null;
  return (
    <Panel title="Question">
      <Prose>{latest.question.question}</Prose>
      {latest.state === 'answered' ? (
        <blockquote className={styles.answer}>
          {latest.answer.data === undefined ? <Prose>{latest.answer.response}</Prose> : <Pairs values={latest.answer.data} />}
          {latest.answer.notes === null ? null : <Prose>{latest.answer.notes}</Prose>}
          <p className="muted">
            <Name>{latest.answer.responded_by}</Name>
            {latest.answer.answered_by?.verified === false ? <Badge tone="warn">typed, not verified</Badge> : null}
            {latest.answer.partial === true ? <Badge tone="warn">given on a part of the text</Badge> : null},{' '}
            {moment(latest.answer.responded_at)}
          </p>
        </blockquote>
      ) : (
        <p className="muted">{latest.state === 'draft' ? 'Not asked yet.' : 'Closed without an answer.'}</p>
      )}
    </Panel>
  );
}

/** The text of a message: JSON is collapsed, everything else is Markdown. */
function Turn({ text }: { text: string }) {
  const data = jsonIn(text);
  if (data === undefined) return <Markdown text={text} />;
  return (
    <details className={styles.data}>
      <summary className="muted">Data, {count(text.length)} characters</summary>
      <CodeBlock label="Data" text={data} />
    </details>
  );
}

/** The longest JSON text that is parsed, in characters. */
const maxData = 100_000;

/** A message that is a JSON object or list, with line breaks; undefined for any other. */
function jsonIn(text: string): string | undefined {
  if (!/^\s*[[{]/.test(text) || text.length > maxData) return undefined;
  try {
    return JSON.stringify(readJson(text), null, 2);
  } catch {
    return undefined;
  }
}

/** How many of the last messages are shown at first, and how many more each time. */
const messagesAtOnce = 20;

function Content({ packet: { context, actions, dependencies } }: { packet: Packet }) {
  const turns = context.conversation_state;
  const [most, setMost] = useState(messagesAtOnce);
  const shown = turns.slice(-most);
  return (
    <>
      {turns.length === 0 ? null : (
        <Panel title="Conversation">
          {shown.length === turns.length ? null : (
            <Button onClick={() => setMost(most + messagesAtOnce)}>Show earlier messages ({turns.length - shown.length})</Button>
          )}
          <ol className={styles.turns}>
            {shown.map(({ role, content, timestamp }, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a message is identified by its place in the conversation.
              <li key={turns.length - shown.length + index}>
                <p className={styles.role}>
                  <Name>{role}</Name> {timestamp === undefined ? null : <span className="muted">{moment(timestamp)}</span>}
                </p>
                <Turn text={content} />
              </li>
            ))}
          </ol>
        </Panel>
      )}
      <Items
        title="Done"
        items={actions.completed.map(({ id, description, result, completed_by }) => ({
          id,
          text: description,
          notes: [result, completed_by],
        }))}
      />
      <Items title="Failed" items={actions.failed.map(({ id, description, error }) => ({ id, text: description, notes: [error] }))} />
      <Items
        title="Dependencies"
        items={dependencies.map(({ id, type, description, status, source }) => ({ id, text: description, notes: [type, status, source] }))}
      />
      <Items
        title="Artifacts"
        items={context.artifacts.map(({ key, value, content_type }) => ({
          id: key,
          text: key,
          notes: [content_type],
          code: textOf(value),
        }))}
      />
      {Object.keys(context.custom).length === 0 ? null : (
        <Panel title="Custom fields">
          <Pairs values={context.custom} />
        </Panel>
      )}
    </>
  );
}

interface Item {
  id: string;
  text: string;
  notes: readonly (string | undefined)[];
  code?: string;
}

function Items({ title, items }: { title: string; items: readonly Item[] }) {
  if (items.length === 0) return null;
  return (
    <Panel title={title}>
      <ul className={styles.items}>
        {items.map(({ id, text, notes, code }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: keys of artifacts may be equal.
          <li key={`${id} ${index}`}>
            <Prose>{text}</Prose>
            <p className="muted" dir="auto">
              {notes.filter(Boolean).join(' – ')}
            </p>
            {code === undefined ? null : <CodeBlock label={text} text={code} />}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Pairs({ values }: { values: Readonly<Record<string, unknown>> }) {
  return (
    <dl className={styles.pairs}>
      {Object.entries(values).map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd dir="auto">{textOf(value)}</dd>
        </Fragment>
      ))}
    </dl>
  );
}

const row = (name: string, value: ReactNode): [string, ReactNode] => [name, value];

/** Who handed over to whom, and who holds the packet. */
function Facts({ packet: { metadata, claimed_by, claimed_at, lease, created_at, updated_at, hitl } }: { packet: Packet }) {
  const rows: [string, ReactNode][] = [
    ['From', <Name key="from">{metadata.source_agent.name}</Name>],
    ['To', <Name key="to">{metadata.target_agent.name}</Name>],
    [
      'Held by',
      claimed_by === null ? (
        <span key="holder" className="muted">
          nobody
        </span>
      ) : (
        <Name key="holder">{claimed_by.agent_name}</Name>
      ),
    ],
    ...(claimed_at === null ? [] : [row('Claimed', <TimeSince key="claimed" at={claimed_at} />)]),
    ...(lease === null || lease.expires_at === null ? [] : [row('Lease', <TimeLeft key="lease" until={lease.expires_at} />)]),
    ...(hitl?.requested_at ? [row('Asked', <TimeSince key="asked" at={hitl.requested_at} />)] : []),
    ['Created', <TimeSince key="created" at={created_at} />],
    ['Changed', <TimeSince key="changed" at={updated_at} />],
  ];
  return (
    <Panel title="Who and when">
      <dl className={styles.pairs}>
        {rows.map(([name, value]) => (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </Fragment>
        ))}
      </dl>
    </Panel>
  );
}

function Raw({ packet }: { packet: Packet }) {
  const [open, setOpen] = useState(false);
  const text = JSON.stringify(packet, null, 2);
  return (
    <Panel
      title="JSON"
      actions={
        <>
          {open ? <CopyButton text={text} /> : null}
          <Button aria-expanded={open} onClick={() => setOpen(!open)}>
            {open ? 'Hide' : 'Show'}
          </Button>
        </>
      }
    >
      {open ? <CodeBlock label="The packet as JSON" text={text} /> : <p className="muted">The packet as the API answers it.</p>}
    </Panel>
  );
}
