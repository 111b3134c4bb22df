import { Plus } from 'lucide-react';
import { type ReactNode, useRef, useState } from 'react';

import { faultsOf } from '../../../kit/web/app/transport.ts';
import { Button } from '../../../kit/web/components/button.tsx';
import { CopyButton } from '../../../kit/web/components/code.tsx';
import { Dialog } from '../../../kit/web/components/dialog.tsx';
import { Callout } from '../../../kit/web/components/feedback.tsx';
import { Form } from '../../../kit/web/components/form.tsx';
import styles from './form-dialog.module.css';

interface FormDialogProps {
  title: string;
  open: boolean;
  onClose(): void;
  /** The text of the button that sends the form. */
  submit: string;
  danger?: boolean;
  onSubmit(): void;
  /** The request that the form sends. */
  request: { error: Error | null; isPending: boolean };
  children: ReactNode;
}

/** A dialog with a form, or with a question whether to do something. It shows why the request was refused. */
export function FormDialog({ title, open, onClose, submit, danger = false, onSubmit, request, children }: FormDialogProps) {
  const form = useRef<HTMLFormElement>(null);
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title={title}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look={danger ? 'danger' : 'primary'} busy={request.isPending} onClick={() => form.current?.requestSubmit()}>
            {submit}
          </Button>
        </>
      }
    >
      <Form ref={form} onSubmit={onSubmit}>
        {children}
        {request.error === null ? null : (
          <Callout tone="bad" alert title="The service refused.">
            {faultsOf(request.error).length > 1
              ? faultsOf(request.error).map(({ field, detail }) => <p key={field}>{detail}</p>)
              : request.error.message}
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
  onClose(): void;
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
      <code>{children}</code>
      <CopyButton text={children} />
    </div>
  );
}
