import { type ReactNode, useRef, useState } from 'react';

import { Button, buttonClass } from '../components/button.tsx';
import { CheckField, TextField } from '../components/field.tsx';
import { Form } from '../components/form.tsx';
import { PageHeader, Panel } from '../components/layout.tsx';
import styles from './key-form.module.css';
import { refetchAfterKeyChange } from './queries.ts';
import { currentKey, setKey } from './session.ts';

interface KeyFormProps {
  /** Whether the key is kept in the tab only if the user chooses so; else it always is. */
  asksToKeep?: boolean;
  /** Where a key comes from. */
  from?: ReactNode;
  /** Another way in, which comes first. */
  signIn?: SignIn | undefined;
}

/** How people sign in without a key. */
export interface SignIn {
  /** What they sign in with. */
  provider: string;
  /** Where a sign-in begins that returns to this page. */
  href: () => string;
  /** Whether keys are not taken. */
  isOnly: boolean;
}

/** Asks for the API key, which is kept at most in this tab, until it is closed; first for another way in, if there is one. */
export function KeyForm({ signIn, ...fields }: KeyFormProps) {
  if (signIn === undefined)
    return (
      <div className={styles.frame}>
        <PageHeader title="API key" subtitle="This service requires an API key." />
        <KeyFields {...fields} />
      </div>
    );
  return (
    <div className={styles.frame}>
      <PageHeader title="Sign in" subtitle="The console is for people of this service." />
      <a className={`${buttonClass('primary')} ${styles.signIn}`} href={signIn.href()}>
        Sign in with {signIn.provider}
      </a>
      {signIn.isOnly ? null : (
        <details className={styles.folded} open={currentKey() !== null}>
          <summary>Use an API key</summary>
          <KeyFields {...fields} />
        </details>
      )}
    </div>
  );
}

/** The form for the key, and where one comes from. */
function KeyFields({ asksToKeep = false, from }: Omit<KeyFormProps, 'signIn'>) {
  const [keep, setKeep] = useState(!asksToKeep);
  const field = useRef<HTMLInputElement>(null);
  const wrong = currentKey() !== null;
  const [error, setError] = useState(wrong ? 'This key was rejected.' : undefined);

  function submit(): void {
    const value = field.current!.value.trim();
    if (value === '') {
      setError('Enter a key.');
      field.current!.focus();
      return;
    }
    setKey(value, keep);
    refetchAfterKeyChange();
  }

  return (
    <>
      <Panel>
        <Form onSubmit={submit}>
          <TextField
            ref={field}
            label="Key"
            type="password"
            autoComplete="off"
            hint={
              asksToKeep
                ? 'The key is never part of an address.'
                : 'The key is kept in this tab until it is closed, and never in an address.'
            }
            error={error}
          />
          {asksToKeep ? (
            <CheckField
              label="Keep it in this tab until it is closed"
              hint="Otherwise the page asks again when it is reloaded."
              checked={keep}
              onChange={({ target }) => setKeep(target.checked)}
            />
          ) : null}
          <Button type="submit" look="primary">
            Continue
          </Button>
        </Form>
      </Panel>
      {from === undefined ? null : (
        <Panel title="Where a key comes from">
          <div className={styles.from}>{from}</div>
        </Panel>
      )}
    </>
  );
}
