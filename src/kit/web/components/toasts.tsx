import { X } from 'lucide-react';
import { useEffect, useState } from 'react';

import { sharedValue } from '../shared-value.ts';
import { Button } from './button.tsx';
import type { Tone } from './feedback.tsx';
import styles from './toasts.module.css';

interface Toast {
  text: string;
  tone?: Tone;
  /** An action, such as undo. */
  action?: { label: string; onSelect(): void };
  /** How long it is shown, in milliseconds. Hover or focus pauses the time. */
  durationMs?: number;
  /** Called when the message disappears without its action having been chosen. */
  onGone?(): void;
}

type Shown = Toast & { id: number };

/** How many messages are shown at once; newer ones replace the oldest. */
const mostShown = 3;

const shown = sharedValue<readonly Shown[]>([]);
let lastId = 0;

/** Shows a short message at the edge of the page. */
export function toast(message: Toast): void {
  for (const old of shown.get().slice(0, 1 - mostShown)) remove(old, false);
  lastId += 1;
  shown.set([...shown.get(), { ...message, id: lastId }]);
}

function remove(message: Shown, chosen: boolean): void {
  if (!shown.get().includes(message)) return;
  shown.set(shown.get().filter((other) => other !== message));
  if (chosen) message.action?.onSelect();
  else message.onGone?.();
}

/** Shows the messages in a live region, so that screen readers announce them. */
export function Toasts() {
  return (
    <div className={styles.region} role="status" aria-live="polite">
      {shown.use().map((message) => (
        <Message key={message.id} message={message} />
      ))}
    </div>
  );
}

function Message({ message }: { message: Shown }) {
  const { text, tone = 'neutral', action, durationMs = 6000 } = message;
  const [pointed, setPointed] = useState(false);
  const [focused, setFocused] = useState(false);
  const held = pointed || focused;
  useEffect(() => {
    if (held) return;
    const timer = setTimeout(() => remove(message, false), durationMs);
    return () => clearTimeout(timer);
  }, [held, message, durationMs]);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: hovering over a message only keeps it visible.
    <div
      className={styles.toast}
      data-tone={tone}
      onPointerEnter={() => setPointed(true)}
      onPointerLeave={() => setPointed(false)}
      onFocus={() => setFocused(true)}
      onBlur={() => setFocused(false)}
    >
      <span>{text}</span>
      {action === undefined ? null : <Button onClick={() => remove(message, true)}>{action.label}</Button>}
      <Button look="quiet" icon={X} aria-label="Dismiss" onClick={() => remove(message, false)} />
    </div>
  );
}

/** What follows a change: a message of its success, unless there is no text, or of its failure. */
export const toastOutcome = <Answer,>(text?: string | ((answer: Answer) => string)) => ({
  onSuccess(answer: Answer) {
    if (text !== undefined) toast({ text: typeof text === 'string' ? text : text(answer), tone: 'good' });
  },
  onError: ({ message }: Error) => toast({ text: message, tone: 'bad' }),
});
