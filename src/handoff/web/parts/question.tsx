import { lazy, type ReactNode, type Ref, Suspense, useEffect, useRef, useState } from 'react';

import { Button } from '../../../kit/web/components/button.tsx';
import { Badge, Callout, Skeleton } from '../../../kit/web/components/feedback.tsx';
import { Panel } from '../../../kit/web/components/layout.tsx';
import { askerName } from '../../model/asker.ts';
import type { Hitl } from '../../model/hitl.ts';
import type { Packet } from '../../model/packet.ts';
import { AnswerForm, type AnswerKeys } from './answer-form.tsx';
import styles from './question.module.css';
import { Name, Prose, TimeLeft, TimeSince } from './texts.tsx';

/** Loaded after the first page, which shows the text as it is until then. */
const Markdown = lazy(async () => ({ default: (await import('./markdown.tsx')).Markdown }));

/** Loaded with the first question about an action. The form imports the module of the action, so it is not shown before the action. */
const Action = lazy(async () => ({ default: (await import('./action.tsx')).Action }));
const DecisionForm = lazy(async () => ({ default: (await import('./decision-form.tsx')).DecisionForm }));

interface QuestionProps {
  packet: Packet & { hitl: Hitl };
  keys?: Ref<AnswerKeys>;
}

/** The open question of a packet and the form that answers it, with what it is about: beside them, or between them in a narrow window. */
export function Question({ packet, keys }: QuestionProps) {
  const { hitl } = packet;
  // Whether a part of what the question is about is hidden: an answer given meanwhile is marked.
  const [isPartial, setPartial] = useState(false);
  const form = { packet, isPartial, ...(keys && { keys }) };
  return (
    <div className={styles.room}>
      <div className={styles.asked}>
        <Asked packet={packet} />
        <Clipped key={hitl.digest} className={styles.about!} onHidden={setPartial}>
          <Background shown={shownOf(packet)} />
        </Clipped>
        {/* What was chosen for another question is not kept. */}
        <section className={styles.answer} aria-label="Answer">
          {hitl.action === undefined ? (
            <AnswerForm key={hitl.digest} {...form} />
          ) : (
            <Suspense fallback={<Skeleton lines={3} />}>
              <DecisionForm key={hitl.digest} {...form} />
            </Suspense>
          )}
        </section>
      </div>
    </div>
  );
}

function Asked({ packet }: { packet: Packet & { hitl: Hitl } }) {
  const { hitl } = packet;
  const [first] = useState(hitl.digest);
  return (
    <section className={styles.question} aria-label="Question">
      <p className={styles.head}>
        <span>
          <Name>{askerName(packet)}</Name> asks {hitl.responder === undefined ? null : <Name>{hitl.responder}</Name>}
        </span>
        <TimeSince at={hitl.requested_at ?? packet.updated_at} />
        <TimeLeft until={hitl.expires_at} />
      </p>
      <h2 dir="auto">{hitl.question}</h2>
      {hitl.reason === '' ? null : <Prose>{hitl.reason}</Prose>}
      {hitl.action === undefined ? null : (
        <Suspense fallback={<Skeleton lines={3} />}>
          <Action hitl={hitl} />
        </Suspense>
      )}
      {hitl.digest === first ? null : (
        <Callout tone="warn" alert title="The question has changed since you opened it.">
          Read it again before you answer.
        </Callout>
      )}
    </section>
  );
}

/** Content of which a narrow window shows the beginning, and the rest on demand, so that what follows stays in sight. */
function Clipped({ className, onHidden, children }: { className: string; onHidden: (isHidden: boolean) => void; children: ReactNode }) {
  const content = useRef<HTMLDivElement>(null);
  const [isWhole, setWhole] = useState(false);
  const [isCut, setCut] = useState(false);
  useEffect(() => {
    const element = content.current!;
    const observer = new ResizeObserver(() => setCut(element.scrollHeight > element.clientHeight + 1));
    for (const watched of [element, ...element.children]) observer.observe(watched);
    return () => observer.disconnect();
  }, []);
  const isHidden = isCut && !isWhole;
  useEffect(() => onHidden(isHidden), [isHidden, onHidden]);
  return (
    <div className={className}>
      <div ref={content} className={styles.clipped} data-whole={isWhole || undefined} data-cut={isCut || undefined}>
        {children}
      </div>
      {isHidden ? <Button onClick={() => setWhole(true)}>Show all that the question is about</Button> : null}
    </div>
  );
}

/** What a question is about, as a person is shown it. */
export interface Shown extends Pick<Packet, 'decisions'> {
  readonly summary: string;
  readonly pending: Packet['actions']['pending'];
}

/** What the question of a packet is about now. */
export const shownOf = ({ context, actions, decisions }: Packet): Shown => ({
  summary: context.summary,
  pending: actions.pending,
  decisions,
});

/** What a question is about: all of it is part of the digest that is sent with the answer. */
export function Background({ shown: { summary, pending, decisions } }: { shown: Shown }) {
  return (
    <>
      <Panel title="Summary">
        <Suspense fallback={<Prose>{summary}</Prose>}>
          <Markdown text={summary} />
        </Suspense>
      </Panel>
      {pending.length === 0 ? null : (
        <Panel title="To be done">
          <ul className={styles.items}>
            {pending.map(({ id, description, assignee, priority }) => (
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

/** A detail of an event as a text: names in a list without brackets. */
export const detailText = (value: unknown): string =>
  Array.isArray(value) && value.every((one) => typeof one === 'string') ? value.join(', ') : textOf(value);
