import { Plus } from 'lucide-react';
import { type ReactNode, useEffect, useRef, useState } from 'react';

import { faultsOf } from '../../../kit/web/app/transport.ts';
import { Button } from '../../../kit/web/components/button.tsx';
import { CopyButton } from '../../../kit/web/components/code.tsx';
import { Dialog } from '../../../kit/web/components/dialog.tsx';
import { Callout } from '../../../kit/web/components/feedback.tsx';
import { Form } from '../../../kit/web/components/form.tsx';
import type { HandoffClient } from '../../client/client.ts';
import { useWrite } from '../data/queries.ts';
import styles from './form-dialog.module.css';

interface FormDialogProps<Answer> {
  title: string;
  onClose: () => void;
  /** The text of the button that sends the form. */
  submit: string;
  danger?: boolean;
  wide?: boolean;
  /** The request of the form. */
  send: (client: HandoffClient) => Promise<Answer>;
  /** How the keys of the queries begin that are read again after the request. */
  refreshes: readonly unknown[];
  /** Called after the request, also if the dialog was closed while it was sent. */
  onDone?: (answer: Answer) => void;
  children: ReactNode;
}

/**
 * A dialog with a form, or with a question whether to do something. It owns the request, shows why it was rejected, and closes
 * after its success. It is rendered only while it is open, so that it never shows the input or the error of an earlier request.
 */
export function FormDialog<Answer>({
  title,
  onClose,
  submit,
  danger = false,
  wide = false,
  send,
  refreshes,
  onDone,
  children,
}: FormDialogProps<Answer>) {
  const form = useRef<HTMLFormElement>(null);
  const isShown = useRef(false);
  useEffect(() => {
    isShown.current = true;
    return () => {
      isShown.current = false;
    };
  }, []);
  const { error, isPending, mutate } = useWrite(send, refreshes, {
    onSuccess(answer) {
      if (isShown.current) onClose();
      onDone?.(answer);
    },
  });
  return (
    <Dialog
      open
      onClose={onClose}
      title={title}
      wide={wide}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look={danger ? 'danger' : 'primary'} busy={isPending} onClick={() => form.current?.requestSubmit()}>
            {submit}
          </Button>
        </>
      }
    >
      <Form
        ref={form}
        onSubmit={() => {
          if (!isPending) mutate();
        }}
      >
        {children}
        {error === null ? null : (
          <Callout tone="bad" alert title="The request was rejected.">
            {faultsOf(error).length > 1
              ? faultsOf(error).map(({ field, detail }) => <p key={`${field} ${detail}`}>{detail}</p>)
              : error.message}
          </Callout>
        )}
        {/* With several fields, Enter sends a form only if it has a button. */}
        <button type="submit" hidden aria-hidden="true" tabIndex={-1}>
          {submit}
        </button>
      </Form>
    </Dialog>
  );
}

/** A button for something new, and its form, which is given the function that closes it. */
export function NewItem({ label, children }: { label: string; children: (close: () => void) => ReactNode }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button icon={Plus} onClick={() => setOpen(true)}>
        {label}
      </Button>
      {open ? children(() => setOpen(false)) : null}
    </>
  );
}

interface ShownOnceProps {
  title: string;
  /** A secret that the service does not show again; the dialog is closed without one. */
  secret: string | undefined;
  onClose: () => void;
  children: ReactNode;
}

/** Shows a secret once, to be copied. */
export function ShownOnce({ title, secret, onClose, children }: ShownOnceProps) {
  return (
    <Dialog firm open={secret !== undefined} onClose={onClose} title={title} actions={<Button onClick={onClose}>Done</Button>}>
      <p>{children}</p>
      <code className={styles.secret}>{secret}</code>
      <div>
        <CopyButton text={secret ?? ''} />
      </div>
    </Dialog>
  );
}

/** A command to paste into a terminal. */
export function Command({ children }: { children: string }) {
  return (
    <div className={styles.command}>
      <code>
        {children.split(/( )/).map((word, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a word is identified by its place.
          <span key={index}>{word}</span>
        ))}
      </code>
      <CopyButton text={children} />
    </div>
  );
}
