import { Check, Copy } from 'lucide-react';
import { useState } from 'react';

import { Button } from './button.tsx';
import styles from './code.module.css';

/** Copies a text and confirms it for two seconds. */
export function CopyButton({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [state, setState] = useState<'idle' | 'copied' | 'refused'>('idle');
  const copy = async () => {
    const done = await navigator.clipboard.writeText(text).then(
      () => 'copied' as const,
      () => 'refused' as const,
    );
    setState(done);
    setTimeout(() => setState('idle'), 2000);
  };
  return (
    <>
      <Button icon={state === 'copied' ? Check : Copy} onClick={() => void copy()}>
        {label}
      </Button>
      <span className="visually-hidden" role="status">
        {state === 'copied' ? 'Copied' : ''}
        {state === 'refused' ? 'The browser did not allow copying' : ''}
      </span>
    </>
  );
}

/** Preformatted text in a scrolling region. */
export function CodeBlock({ text, label }: { text: string; label: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard (WCAG 2.1.1).
    <section className={styles.code} aria-label={label} tabIndex={0}>
      <pre>
        <code>{text}</code>
      </pre>
    </section>
  );
}
