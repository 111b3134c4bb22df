import { Plus, Send } from 'lucide-react';
import { type ReactNode, type Ref, useEffect, useImperativeHandle, useRef, useState } from 'react';

import { ApiError } from '../../../kit/client-errors.ts';
import { besideField, faultsOf } from '../../../kit/web/app/transport.ts';
import { Button } from '../../../kit/web/components/button.tsx';
import { Dialog } from '../../../kit/web/components/dialog.tsx';
import { Callout } from '../../../kit/web/components/feedback.tsx';
import { TextArea, TextField } from '../../../kit/web/components/field.tsx';
import { Fields, Form } from '../../../kit/web/components/form.tsx';
import { toast } from '../../../kit/web/components/toasts.tsx';
import { defaultTexts, formData } from '../../model/form-values.ts';
import type { Hitl } from '../../model/hitl.ts';
import type { OwnKey } from '../../model/key.ts';
import { onlyVerified, takesOnlyVerified } from '../../model/offered.ts';
import { choicesOf } from '../../model/options.ts';
import type { Packet } from '../../model/packet.ts';
import { type Answer, useMay, useOwnKey, useRespond } from '../data/queries.ts';
import styles from './answer-form.module.css';
import { keptName } from './kept-name.ts';
import { SchemaField } from './schema-field.tsx';

/** What keys of a page can do with the form. */
export interface AnswerKeys {
  /** Chooses the option of a number, from 1. */
  choose(number: number): void;
  /** Sends what was chosen or entered; false if nothing was, also where a form could be sent empty. */
  send(): boolean;
}

/** What the person has entered: the index of the chosen option or -1, their own words, a remark, and the texts of a form's fields. */
interface Draft {
  chosen: number;
  text: string;
  notes: string;
  fields: Readonly<Record<string, readonly string[]>>;
}

interface AnswerFormProps {
  packet: Packet & { hitl: Hitl };
  /** Whether a part of what the question is about is hidden. */
  isPartial: boolean;
  keys?: Ref<AnswerKeys>;
}

/** Says beside the buttons that the person does not see all that the question is about. */
export const PartHidden = () => (
  <p className="muted" role="status">
    Part of what the question is about is hidden. An answer before you show it is recorded as given on a part of the text.
  </p>
);

/** Says in place of a form which right the person or the key lacks. */
export const MayNotAnswer = ({ own }: { own: OwnKey | undefined }) => (
  <Callout tone="info">
    {own?.kind === 'session' ? 'You can’t answer: you need the right ' : 'This key can’t answer: it needs the scope '}
    <code>respond</code>.
  </Callout>
);

/** Says before an answer that a name which is only typed does not count. */
export function NameNeeded({ hitl }: { hitl: Hitl }) {
  const own = useOwnKey();
  if (own === undefined || own.responder || !takesOnlyVerified(hitl)) return null;
  return (
    <Callout tone="warn" title="An answer with this key will be refused.">
      {onlyVerified}
    </Callout>
  );
}

/** The form that answers the question of a packet. */
// oxlint-disable-next-line baton/own-lines -- the form and what its keys do; its parts are components of their own.
export function AnswerForm({ packet, isPartial, keys }: AnswerFormProps) {
  const { hitl } = packet;
  const own = useOwnKey();
  const mayAnswer = useMay('respond');
  // A name that is only typed is prefilled nowhere: each person enters the own one.
  const [name, setName] = useState('');
  const [draft, setDraft] = useState<Draft>({ chosen: -1, text: '', notes: '', fields: {} });
  const textsOf = (field: string) => draft.fields[field] ?? defaultTexts(hitl.schema!.properties[field]!);
  const set = (changes: Partial<Draft>) => setDraft((before) => ({ ...before, ...changes }));
  const [confirming, setConfirming] = useState(false);
  const nameField = useRef<HTMLInputElement>(null);
  const answer = useRespond(packet, () => toast({ text: 'The answer is recorded.', tone: 'good' }));
  const choices = choicesOf(hitl.options);
  const chosen = choices[draft.chosen];
  const responder = own?.responder ?? name.trim();

  const toSend = (): Pick<Answer, 'response' | 'data'> | undefined => {
    if (chosen !== undefined) return { response: chosen.value };
    if (hitl.schema !== undefined) return { data: formData(hitl.schema, textsOf) };
    return draft.text.trim() === '' ? undefined : { response: draft.text };
  };
  const send = (isConfirmed = false): boolean => {
    const content = toSend();
    if (content === undefined || !mayAnswer) return false;
    if (responder === '') nameField.current?.focus();
    else if (chosen?.isDangerous && !isConfirmed) setConfirming(true);
    else if (!answer.isPending) {
      setConfirming(false);
      keptName.write(responder);
      const notes = draft.notes.trim() === '' ? {} : { notes: draft.notes };
      answer.mutate({ ...content, responded_by: responder, ...notes, ...(isPartial ? { partial: true } : {}) });
    }
    return true;
  };
  useImperativeHandle(keys, () => ({
    choose: (number) => number <= choices.length && set({ chosen: number - 1, text: '' }),
    send: () => (hitl.schema === undefined || chosen !== undefined || Object.keys(draft.fields).length > 0) && send(),
  }));
  if (!mayAnswer) return <MayNotAnswer own={own} />;
  const faultOf = (field: string) =>
    faultsOf(answer.error)
      .filter((fault) => fault.field === field)
      .map(besideField)[0];
  return (
    <Form onSubmit={() => send()}>
      {hitl.schema === undefined ? null : (
        <Fields>
          {Object.entries(hitl.schema.properties).map(([field, schema]) => (
            <SchemaField
              key={field}
              label={`${schema.title ?? field}${hitl.schema?.required?.includes(field) ? '' : ' (optional)'}`}
              schema={schema}
              texts={textsOf(field)}
              onChange={(texts) => set({ fields: { ...draft.fields, [field]: texts }, chosen: -1 })}
              error={faultOf(`data.${field}`)}
            />
          ))}
        </Fields>
      )}
      {hitl.schema === undefined || choices.length > 0 ? <OptionsAndText hitl={hitl} draft={draft} onChange={set} /> : null}
      <Fields>
        {own?.responder ? null : (
          <TextField
            ref={nameField}
            label="Your name"
            value={name}
            onChange={({ target }) => setName(target.value)}
            error={faultOf('responded_by')}
          />
        )}
      </Fields>
      <Folded label="Add a remark" isOpen={choices.length === 0 || draft.notes !== ''}>
        <TextField label="Remark (optional)" value={draft.notes} onChange={({ target }) => set({ notes: target.value })} />
      </Folded>
      <Refusal error={answer.error} />
      {isPartial ? <PartHidden /> : null}
      <NameNeeded hitl={hitl} />
      <div className={styles.send}>
        <Button
          type="submit"
          look={chosen?.isDangerous ? 'danger' : 'primary'}
          icon={Send}
          busy={answer.isPending}
          aria-disabled={toSend() === undefined || undefined}
        >
          Send answer
        </Button>
        {own?.responder ? <span className="muted">as {own.responder}</span> : null}
      </div>
      <Dialog
        open={confirming}
        onClose={() => setConfirming(false)}
        title="Send this answer?"
        actions={
          <>
            <Button data-autofocus="true" onClick={() => setConfirming(false)}>
              Cancel
            </Button>
            <Button look="danger" onClick={() => send(true)}>
              Confirm: {chosen?.label}
            </Button>
          </>
        }
      >
        <p dir="auto">{hitl.question}</p>
        <p className="muted">This option is marked as dangerous. Please confirm.</p>
      </Dialog>
    </Form>
  );
}

/** Why an answer was refused. */
function Refusal({ error }: { error: Error | null }) {
  if (error === null) return null;
  if (error instanceof ApiError && error.code === 'STALE')
    return (
      <Callout tone="warn" alert title="The question has changed since you read it.">
        Nothing was sent. Read it again: what is shown now is what you would answer.
      </Callout>
    );
  const faults = faultsOf(error).filter(({ field }) => !field.startsWith('data.') && field !== 'responded_by');
  if (faults.length === 0 && faultsOf(error).length > 0) return null;
  return (
    <Callout tone="bad" alert title="The answer was not recorded.">
      {error.message}
    </Callout>
  );
}

interface OptionsAndTextProps {
  hitl: Hitl;
  draft: { chosen: number; text: string };
  onChange: (changes: { chosen?: number; text?: string }) => void;
}

function OptionsAndText({ hitl, draft, onChange }: OptionsAndTextProps) {
  const choices = choicesOf(hitl.options);
  return (
    <>
      {choices.length === 0 ? null : (
        <fieldset className={styles.options}>
          <legend className="visually-hidden">Options</legend>
          {choices.map(({ label, isDangerous }, index) => (
            <button
              // biome-ignore lint/suspicious/noArrayIndexKey: options may be equal, and an option is identified by its number.
              key={index}
              type="button"
              className={styles.option}
              data-danger={isDangerous || undefined}
              aria-pressed={draft.chosen === index}
              onClick={() => onChange({ chosen: draft.chosen === index ? -1 : index, text: '' })}
            >
              {index < 9 ? <kbd>{index + 1}</kbd> : null}
              <bdi>{label}</bdi>
            </button>
          ))}
        </fieldset>
      )}
      {choices.length > 0 && (hitl.strict_options || hitl.schema !== undefined) ? null : (
        <Folded label="Answer in your own words" isOpen={choices.length === 0 || draft.text !== ''}>
          <TextArea
            label={choices.length === 0 ? 'Your answer' : 'Another answer'}
            rows={choices.length === 0 ? 4 : 2}
            value={draft.text}
            onChange={({ target }) => onChange({ text: target.value, chosen: -1 })}
          />
        </Folded>
      )}
    </>
  );
}

/** A field that is rarely needed, which a click on its label shows; shown at once while it is needed or has a text. */
function Folded({ label, isOpen, children }: { label: string; isOpen: boolean; children: ReactNode }) {
  const [wasAsked, setAsked] = useState(false);
  const shown = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (wasAsked) shown.current?.querySelector<HTMLElement>('input, textarea')?.focus();
  }, [wasAsked]);
  if (isOpen || wasAsked) return <div ref={shown}>{children}</div>;
  return (
    <div>
      <Button look="quiet" icon={Plus} onClick={() => setAsked(true)}>
        {label}
      </Button>
    </div>
  );
}
