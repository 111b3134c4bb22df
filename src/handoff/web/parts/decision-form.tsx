import { Check, PencilLine, Reply, X } from 'lucide-react';
import { type Ref, useImperativeHandle, useRef, useState } from 'react';

import { ApiError } from '../../../kit/client-errors.ts';
import { Button } from '../../../kit/web/components/button.tsx';
import { Callout } from '../../../kit/web/components/feedback.tsx';
import { SelectField, TextField } from '../../../kit/web/components/field.tsx';
import { Fields, Form } from '../../../kit/web/components/form.tsx';
import { toast } from '../../../kit/web/components/toasts.tsx';
import type { Hitl } from '../../model/hitl.ts';
import { offeredBy } from '../../model/offered.ts';
import type { Packet } from '../../model/packet.ts';
import { scopeChoices, timeChoices } from '../../model/remembered.ts';
import { useMay, useOwnKey, useRespond } from '../data/queries.ts';
import styles from './answer-form.module.css';
import { type AnswerKeys, MayNotAnswer, NameNeeded, PartHidden } from './answer-form.tsx';
import { ArgumentFields, type ArgumentsDraft, argumentsIn, jsonText } from './argument-fields.tsx';
import { keptName } from './kept-name.ts';

const words = {
  approve: { label: 'Approve', icon: Check },
  reject: { label: 'Reject', icon: X },
  edit: { label: 'Approve with these arguments', icon: PencilLine },
  respond: { label: 'Answer the agent instead', icon: Reply },
} as const;
type Word = keyof typeof words;

interface DecisionFormProps {
  packet: Packet & { hitl: Hitl };
  /** Whether a part of what the question is about is hidden. */
  isPartial: boolean;
  keys?: Ref<AnswerKeys>;
}

/** What is missing in a decision, as a sentence; undefined: nothing. */
function faultOf(decision: Word, { responder, given, message }: { responder: string; given: object | undefined; message: string }) {
  if (responder === '') return 'Enter your name.';
  if (decision === 'edit' && given === undefined) return 'The arguments must be a JSON object.';
  if (decision === 'respond' && message.trim() === '') return 'Write what to answer the agent.';
  return undefined;
}

interface DecisionsProps {
  offered: readonly Word[];
  chosen: Word | undefined;
  onChoose: (word: Word | undefined) => void;
}

/** The decisions to choose from, with their keys. */
function Decisions({ offered, chosen, onChoose }: DecisionsProps) {
  return (
    <fieldset className={styles.options}>
      <legend className="visually-hidden">Decisions</legend>
      {offered.map((word, index) => (
        <button
          key={word}
          type="button"
          className={styles.option}
          data-danger={word === 'reject' || undefined}
          aria-pressed={chosen === word}
          onClick={() => onChoose(chosen === word ? undefined : word)}
        >
          <kbd>{index + 1}</kbd>
          {words[word].label}
        </button>
      ))}
    </fieldset>
  );
}

/** The field of what the agent is told. */
function Message(props: { decision: 'reject' | 'respond'; value: string; onChange: (value: string) => void }) {
  const { decision, value, onChange } = props;
  const label = decision === 'reject' ? 'Message to the agent (optional)' : 'Answer to the agent';
  return <TextField label={label} value={value} onChange={({ target }) => onChange(target.value)} />;
}

/** The form that decides about the action of a packet. Keys choose a decision by its number. */
export function DecisionForm({ packet, isPartial, keys }: DecisionFormProps) {
  const { hitl } = packet;
  const { action, edited, remember } = hitl;
  const own = useOwnKey();
  const mayAnswer = useMay('respond');
  const offered = offeredBy(action!);
  // A name that is only typed is prefilled nowhere: each person enters the own one.
  const [name, setName] = useState('');
  const nameField = useRef<HTMLInputElement>(null);
  const [message, setMessage] = useState('');
  const shown = edited?.arguments ?? action!.arguments;
  const [draft, setDraft] = useState<ArgumentsDraft>(() => ({ fields: {}, text: jsonText(shown) }));
  const [chosen, setChosen] = useState<Word | undefined>();
  const [stands, setStands] = useState<Stands>(onlyThis);
  const [problem, setProblem] = useState<string | undefined>();
  const answer = useRespond(packet, () => toast({ text: 'The decision is recorded.', tone: 'good' }));
  const responder = own?.responder ?? name.trim();

  const send = (decision: Word | undefined): boolean => {
    if (decision === undefined || !mayAnswer || answer.isPending) return false;
    const given = decision === 'edit' ? argumentsIn(action!, shown, draft) : undefined;
    const fault = faultOf(decision, { responder, given, message });
    setProblem(fault);
    if (responder === '') nameField.current?.focus();
    if (fault !== undefined) return true;
    keptName.write(responder);
    const says = (decision === 'reject' || decision === 'respond') && message.trim() !== '';
    answer.mutate({
      decision,
      responded_by: responder,
      ...(says ? { message } : {}),
      ...(given === undefined ? {} : { arguments: given }),
      ...(decision === 'approve' && stands.scope !== '' ? { remember: { scope: stands.scope, seconds: Number(stands.seconds) } } : {}),
      ...(isPartial ? { partial: true } : {}),
    });
    return true;
  };
  useImperativeHandle(keys, () => ({
    choose: (number) => setChosen(offered[number - 1]),
    send: () => send(chosen),
  }));
  if (!mayAnswer) return <MayNotAnswer own={own} />;
  return (
    <Form onSubmit={() => send(chosen)}>
      <Decisions offered={offered} chosen={chosen} onChoose={setChosen} />
      <Fields>
        {chosen === 'edit' ? (
          <ArgumentFields action={action!} given={shown} draft={draft} onChange={setDraft} error={answer.error} />
        ) : null}
        {/* A name that is only typed lets nothing stand. */}
        {chosen === 'approve' && remember !== undefined && own?.responder ? (
          <StandingFields limits={remember} tool={action!.tool} stands={stands} onChange={setStands} />
        ) : null}
        {chosen === 'reject' || chosen === 'respond' ? <Message decision={chosen} value={message} onChange={setMessage} /> : null}
        {own?.responder ? null : (
          <TextField ref={nameField} label="Your name" value={name} onChange={({ target }) => setName(target.value)} />
        )}
      </Fields>
      <Refused problem={problem} error={answer.error} />
      {isPartial ? <PartHidden /> : null}
      <NameNeeded hitl={hitl} />
      <div className={styles.send}>
        <Button
          type="submit"
          look={chosen === 'reject' ? 'danger' : 'primary'}
          icon={chosen === undefined ? Check : words[chosen].icon}
          busy={answer.isPending}
          aria-disabled={chosen === undefined || undefined}
        >
          {chosen === undefined ? 'Choose a decision' : words[chosen].label}
        </Button>
        {own?.responder ? <span className="muted">as {own.responder}</span> : null}
      </div>
    </Form>
  );
}

/** How long an approval stands for later calls: for which, and for how many seconds. */
interface Stands {
  readonly scope: '' | 'call' | 'tool';
  readonly seconds: string;
}
const onlyThis: Stands = { scope: '', seconds: '' };

interface StandingFieldsProps {
  limits: NonNullable<Hitl['remember']>;
  tool: string;
  stands: Stands;
  onChange: (stands: Stands) => void;
}

/** The choices of whether an approval stands for later calls. */
function StandingFields({ limits, tool, stands, onChange }: StandingFieldsProps) {
  const times = timeChoices(limits);
  return (
    <>
      <SelectField
        label="Approve later too"
        options={[{ value: '', label: 'Only this one' }, ...scopeChoices(limits, tool).map(([value, label]) => ({ value, label }))]}
        value={stands.scope}
        onChange={({ target }) =>
          onChange({ scope: target.value as Stands['scope'], seconds: stands.seconds === '' ? String(times[0]![0]) : stands.seconds })
        }
      />
      {stands.scope === '' ? null : (
        <SelectField
          label="For"
          options={times.map(([seconds, label]) => ({ value: String(seconds), label }))}
          value={stands.seconds}
          onChange={({ target }) => onChange({ ...stands, seconds: target.value })}
        />
      )}
    </>
  );
}

/** Why a decision was refused. */
function Refused({ problem, error }: { problem: string | undefined; error: Error | null }) {
  if (problem !== undefined)
    return (
      <Callout tone="bad" alert title="Nothing was sent.">
        {problem}
      </Callout>
    );
  if (error === null) return null;
  const isStale = error instanceof ApiError && error.code === 'STALE';
  return (
    <Callout
      tone={isStale ? 'warn' : 'bad'}
      alert
      title={isStale ? 'The action has changed since you read it.' : 'The decision was not recorded.'}
    >
      {isStale ? 'Nothing was sent. Read it again: what is shown now is what you would approve.' : error.message}
    </Callout>
  );
}
