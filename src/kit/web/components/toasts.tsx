import { X } from 'lucide-react';
import { createContext, type ReactNode, useCallback, useContext, useEffect, useRef, useState } from 'react';

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

const Context = createContext<(toast: Toast) => void>(() => undefined);

/** Shows a short message at the edge of the page. */
export const useToast = () => useContext(Context);

/** Shows the messages in a live region, so that screen readers announce them. */
export function Toasts({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<readonly Shown[]>([]);
  // The current messages, for calls between two renderings.
  const latest = useRef(toasts);
  const nextId = useRef(1);
  const change = useCallback((next: readonly Shown[]) => {
    latest.current = next;
    setToasts(next);
  }, []);
  const remove = useCallback(
    (id: number, chosen: boolean) => {
      const toast = latest.current.find((shown) => shown.id === id);
      if (toast === undefined) return;
      change(latest.current.filter((shown) => shown !== toast));
      if (chosen) toast.action?.onSelect();
      else toast.onGone?.();
    },
    [change],
  );
  const show = useCallback(
    (toast: Toast) => {
      for (const { id } of latest.current.slice(0, 1 - mostShown)) remove(id, false);
      change([...latest.current, { ...toast, id: nextId.current++ }]);
    },
    [change, remove],
  );
  return (
    <Context value={show}>
      {children}
      <div className={styles.region} role="status" aria-live="polite">
        {toasts.map((toast) => (
          <Message key={toast.id} toast={toast} onRemove={remove} />
        ))}
      </div>
    </Context>
  );
}

interface MessageProps {
  toast: Shown;
  onRemove(id: number, chosen: boolean): void;
}

function Message({ toast: { id, text, tone = 'neutral', action, durationMs = 6000 }, onRemove }: MessageProps) {
  const [pointed, setPointed] = useState(false);
  const [focused, setFocused] = useState(false);
  const held = pointed || focused;
  useEffect(() => {
    if (held) return;
    const timer = setTimeout(() => onRemove(id, false), durationMs);
    return () => clearTimeout(timer);
  }, [held, id, durationMs, onRemove]);
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
      {action === undefined ? null : <Button onClick={() => onRemove(id, true)}>{action.label}</Button>}
      <Button look="quiet" icon={X} aria-label="Dismiss" onClick={() => onRemove(id, false)} />
    </div>
  );
}

/** Returns the callbacks of a change that tell the user of its success, with a text, or of its failure. */
export function useReport() {
  const toast = useToast();
  return (text?: string, then?: () => void) => ({
    onSuccess() {
      if (text !== undefined) toast({ text, tone: 'good' });
      then?.();
    },
    onError: ({ message }: Error) => toast({ text: message, tone: 'bad' }),
  });
}
