import { useState } from 'react';
import { Link } from 'react-router';

import { Load } from '../../../kit/web/app/load.tsx';
import { useTitle } from '../../../kit/web/app/title.ts';
import { Button } from '../../../kit/web/components/button.tsx';
import { Empty } from '../../../kit/web/components/feedback.tsx';
import { PageHeader, Panel } from '../../../kit/web/components/layout.tsx';
import type { AuditEntry } from '../../model/audit.ts';
import type { Hitl } from '../../model/hitl.ts';
import { useMyAnswers, useOwnKey, useQuestion } from '../data/queries.ts';
import { Action } from '../parts/action.tsx';
import { InboxTabs } from '../parts/inbox-tabs.tsx';
import { keptName } from '../parts/kept-name.ts';
import { Background, type Shown, textOf } from '../parts/question.tsx';
import { Name, Prose, TimeSince } from '../parts/texts.tsx';
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

/** How many answers are shown at first, and how many more each time. */
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

/** The document that a person was shown. */
interface SeenDocument extends Shown, Pick<Hitl, 'question' | 'reason'> {
  /** With the arguments as they were approved, if somebody changed them. */
  readonly action?: NonNullable<Hitl['action']> & { readonly edited?: NonNullable<Hitl['action']>['arguments'] };
}

/** What a person saw: the question, the action it was about, and the packet as it was then. */
function Seen({ shown }: { shown: SeenDocument }) {
  const { question, reason, action } = shown;
  return (
    <>
      <Prose>{question}</Prose>
      {reason === '' ? null : <Prose>{reason}</Prose>}
      {action === undefined ? null : (
        <Action hitl={{ action, ...(action.edited === undefined ? {} : { edited: { arguments: action.edited } }) }} />
      )}
      <Background shown={shown} />
    </>
  );
}

function Answer({ entry: { packet_id: id, timestamp, details } }: { entry: AuditEntry }) {
  const [open, setOpen] = useState(false);
  const question = useQuestion(id ?? '', String(details.question_id), open && id !== null);
  return (
    <li>
      <p className="muted">
        <TimeSince at={timestamp} />
      </p>
      <Prose>{question.data?.question.question ?? textOf(details.question ?? 'A question')}</Prose>
      <p className={styles.answer} dir="auto">
        {answerText(details)}
      </p>
      <p className={styles.links}>
        {id === null ? null : (
          <Button look="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
            {open ? 'Hide what I saw' : 'What I saw'}
          </Button>
        )}
        {id === null ? null : <Link to={`/packets/${id}`}>Open the packet</Link>}
      </p>
      {open ? (
        <Load query={question} what="The question">
          {({ shown }) => (
            <div className={styles.seen}>
              {shown === null ? 'It is not known what was shown.' : <Seen shown={shown as unknown as SeenDocument} />}
            </div>
          )}
        </Load>
      ) : null}
    </li>
  );
}
