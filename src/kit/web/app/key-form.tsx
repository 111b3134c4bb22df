import { useRef, useState } from 'react';

import { Button } from '../components/button.tsx';
import { CheckField, TextField } from '../components/field.tsx';
import { Form } from '../components/form.tsx';
import { PageHeader, Panel } from '../components/layout.tsx';
import styles from './key-form.module.css';
import { askAgain } from './queries.ts';
import { currentKey, setKey } from './session.ts';

/** Asks for the API key, which is kept only in this tab: until it is closed, or with `asksToKeep` only if the user wants that. */
export function KeyForm({ asksToKeep = false }: { asksToKeep?: boolean }) {
  const [keep, setKeep] = useState(!asksToKeep);
  const field = useRef<HTMLInputElement>(null);
  const wrong = currentKey() !== null;
  const [error, setError] = useState(wrong ? 'The service refused this key.' : undefined);

  function submit(): void {
    const value = field.current!.value.trim();
    if (value === '') {
      setError('Enter a key.');
      field.current!.focus();
      return;
    }
    setKey(value, keep);
    askAgain();
  }

  return (
    <div className={styles.frame}>
      <PageHeader title="API key" subtitle="This service requires an API key." />
      <Panel>
        <Form onSubmit={submit}>
          <TextField
            ref={field}
            label="Key"
            type="password"
            autoComplete="off"
            hint={asksToKeep ? 'The key is kept in memory, and never in an address.' : 'The key is kept until this tab is closed.'}
            error={error}
          />
          {asksToKeep ? (
            <CheckField label="Keep it until this tab is closed" checked={keep} onChange={({ target }) => setKeep(target.checked)} />
          ) : null}
          <Button type="submit" look="primary">
            Continue
          </Button>
        </Form>
      </Panel>
    </div>
  );
}
