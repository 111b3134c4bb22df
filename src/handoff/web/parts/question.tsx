import { lazy, type Ref, Suspense, useState } from 'react';

import { Badge, Callout } from '../../../kit/web/components/feedback.tsx';
import { Panel } from '../../../kit/web/components/layout.tsx';
import { askerName } from '../../model/asker.ts';
import type { Hitl, Packet } from '../../model/packet.ts';
import { AnswerForm, type AnswerKeys } from './answer-form.tsx';
import styles from './question.module.css';
import { Ago, Name, Prose, TimeLeft } from './texts.tsx';

/** Loaded after the first page, which shows the text as it is until then. */
const Markdown = lazy(async () => ({ default: (await import('./markdown.tsx')).Markdown }));

interface QuestionProps {
  packet: Packet & { hitl: Hitl };
  keys?: Ref<AnswerKeys>;
}

/** The open question of a packet, with the form that answers it. */
export function Question({ packet, keys }: QuestionProps) {
  const { hitl } = packet;
  const [first] = useState(hitl.digest);
  return (
    <section className={styles.question} aria-label="Question">
      <p className={styles.head}>
        <span>
          <Name>{askerName(packet)}</Name> asks {hitl.responder === undefined ? null : <Name>{hitl.responder}</Name>}
        </span>
        <Ago at={hitl.requested_at ?? packet.updated_at} />
        <TimeLeft until={hitl.expires_at} />
      </p>
      <h2 dir="auto">{hitl.question}</h2>
      {hitl.reason === '' ? null : <Prose>{hitl.reason}</Prose>}
      {hitl.digest === first ? null : (
        <Callout tone="warn" alert title="The question has changed since you opened it.">
          Read it again before you answer.
        </Callout>
      )}
      {/* What was chosen for another question is not kept. */}
      <AnswerForm key={hitl.digest} packet={packet} {...(keys && { keys })} />
    </section>
  );
}

/** What a question is about: all of it is part of the digest that is sent with the answer. */
export function Background({ packet: { context, actions, decisions } }: { packet: Packet }) {
  return (
    <>
      <Panel title="Summary">
        <Suspense fallback={<Prose>{context.summary}</Prose>}>
          <Markdown text={context.summary} />
        </Suspense>
      </Panel>
      {actions.pending.length === 0 ? null : (
        <Panel title="To be done">
          <ul className={styles.items}>
            {actions.pending.map(({ id, description, assignee, priority }) => (
              <li key={id}>
                <Prose>{description}</Prose>
                <p className="muted">
                  <Name>{assignee}</Name> {priority === undefined ? null : <Badge>{priority}</Badge>}
                </p>
              </li>
            ))}
          </ul>
        </Panel>
      )}
      {decisions.length === 0 ? null : (
        <Panel title="Decided so far">
          <ul className={styles.items}>
            {decisions.map(({ id, decision, rationale, decided_by, alternatives = [] }) => (
              <li key={id}>
                <Prose>{decision}</Prose>
                <p className="muted" dir="auto">
                  {[rationale, decided_by].filter(Boolean).join(' – ')}
                </p>
                {alternatives.length === 0 ? null : <p className="muted">Also considered: {alternatives.map(textOf).join('; ')}</p>}
              </li>
            ))}
          </ul>
        </Panel>
      )}
    </>
  );
}

/** A value of any kind as a text. */
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
