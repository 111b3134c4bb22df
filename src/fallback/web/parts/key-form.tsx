import { useRef, useState } from 'react';

import { Button } from '../../../kit/web/components/button.tsx';
import { TextField } from '../../../kit/web/components/field.tsx';
import { Form } from '../../../kit/web/components/form.tsx';
import { PageHeader, Panel } from '../../../kit/web/components/layout.tsx';
import { askAgain } from '../data/queries.ts';
import { currentKey, setKey } from '../data/session.ts';
import styles from './key-form.module.css';

/** Asks for the API key, which is kept only in this tab. */
export function KeyForm() {
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
    setKey(value);
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
            hint="The key is kept until this tab is closed."
            error={error}
          />
          <Button type="submit" look="primary">
            Continue
          </Button>
        </Form>
      </Panel>
    </div>
  );
}
