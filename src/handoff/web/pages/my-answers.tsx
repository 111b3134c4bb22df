import { useState } from 'react';
import { Link } from 'react-router';

import { Load } from '../../../kit/web/app/load.tsx';
import { useTitle } from '../../../kit/web/app/title.ts';
import { Button } from '../../../kit/web/components/button.tsx';
import { Callout, Empty } from '../../../kit/web/components/feedback.tsx';
import { PageHeader, Panel } from '../../../kit/web/components/layout.tsx';
import type { AuditEntry } from '../../model/audit.ts';
import { useHistory, useMyAnswers, useOwnKey, useUnpolledPacket } from '../data/queries.ts';
import { keptName } from '../parts/answer-form.tsx';
import { InboxTabs } from '../parts/inbox-tabs.tsx';
import { Background, textOf } from '../parts/question.tsx';
import { Ago, Name, Prose } from '../parts/texts.tsx';
import { answerText } from '../parts/timeline.tsx';
import styles from './my-answers.module.css';

/** The answers that the person gave today, each with what it was about. */
export function MyAnswers() {
  useTitle('My answers');
  const own = useOwnKey();
  const name = own?.responder ?? keptName.read() ?? undefined;
  const answers = useMyAnswers(name);
  return (
    <>
      <PageHeader
        title="My answers"
        subtitle={
          name === undefined ? undefined : (
            <>
              Today, as <Name>{name}</Name>
            </>
          )
        }
      />
      <InboxTabs />
      <Panel>
        {name === undefined ? (
          <Nothing />
        ) : (
          <Load query={answers} what="The answers">
            {(entries) => (entries.length === 0 ? <Nothing /> : <Answers entries={entries} />)}
          </Load>
        )}
      </Panel>
    </>
  );
}

const Nothing = () => <Empty title="No answers today">What you decide today appears here, with what you saw.</Empty>;

/** How many answers are shown at first, and how many more each time. The packet of each is read, and a key may have a limit per minute. */
const answersAtOnce = 20;

function Answers({ entries }: { entries: readonly AuditEntry[] }) {
  const [most, setMost] = useState(answersAtOnce);
  return (
    <>
      <ol className={styles.answers}>
        {entries.slice(0, most).map((entry) => (
          <Answer key={entry.id} entry={entry} />
        ))}
      </ol>
      {entries.length <= most ? null : (
        <div>
          <Button onClick={() => setMost(most + answersAtOnce)}>Show earlier answers ({entries.length - most})</Button>
        </div>
      )}
    </>
  );
}

function Answer({ entry: { packet_id: id, timestamp, details } }: { entry: AuditEntry }) {
  const [open, setOpen] = useState(false);
  const packet = useUnpolledPacket(id ?? '', id !== null);
  const question = packet.data?.hitl;
  // A packet may be asked several questions, of which it keeps the last.
  const isLast = question?.question_id === details.question_id;
  const history = useHistory(id ?? '', packet.data?.revision ?? 0, packet.data !== undefined && (open || !isLast)).data ?? [];
  const own = history.filter((event) => event.details.question_id === details.question_id);
  const asked = own.find(({ event_type }) => event_type === 'awaiting_human');
  const answered = own.findLast(({ event_type }) => event_type === 'hitl_responded');
  const isChanged = answered !== undefined && history.slice(history.indexOf(answered) + 1).some((event) => 'fields' in event.details);
  return (
    <li>
      <p className="muted">
        <Ago at={timestamp} />
      </p>
      <Prose>{isLast ? (question?.question ?? '') : textOf(asked?.details.question ?? 'A question')}</Prose>
      <p className={styles.answer} dir="auto">
        {answerText(details)}
      </p>
      <p className={styles.links}>
        <Button look="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? 'Hide what I saw' : 'What I saw'}
        </Button>
        {id === null ? null : <Link to={`/packets/${id}`}>Open the packet</Link>}
      </p>
      {open ? (
        <Load query={packet} what="The packet">
          {(found) => (
            <div className={styles.seen}>
              {isChanged ? <Callout tone="info">The packet has changed since your answer. This is what it says now.</Callout> : null}
              <Background packet={found} />
            </div>
          )}
        </Load>
      ) : null}
    </li>
  );
}
