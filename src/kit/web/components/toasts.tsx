import { X } from 'lucide-react';
import { createContext, type ReactNode, useCallback, useContext, useMemo, useRef, useState } from 'react';

import { Button } from './button.tsx';
import type { Tone } from './feedback.tsx';
import styles from './toasts.module.css';

interface Toast {
  text: string;
  tone?: Tone;
  /** One thing to do about it, such as to undo. */
  action?: { label: string; onSelect(): void };
  /** How long it stands, in milliseconds. Pointing at it or focus in it holds it. */
  durationMs?: number;
}

type Shown = Toast & { id: number };

const Context = createContext<(toast: Toast) => void>(() => undefined);

/** Shows a short message at the edge of the page. */
export const useToast = () => useContext(Context);

/** Holds the messages: a live region, so that screen readers hear them. */
export function Toasts({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<readonly Shown[]>([]);
  const next = useRef(1);
  const timers = useRef(new Map<number, ReturnType<typeof setTimeout>>());

  const hold = useCallback((id: number) => clearTimeout(timers.current.get(id)), []);
  const dismiss = useCallback(
    (id: number) => {
      hold(id);
      setToasts((shown) => shown.filter((toast) => toast.id !== id));
    },
    [hold],
  );
  const start = useCallback(
    (id: number, durationMs: number) => {
      timers.current.set(
        id,
        setTimeout(() => dismiss(id), durationMs),
      );
    },
    [dismiss],
  );
  const show = useMemo(
    () => (toast: Toast) => {
      const id = next.current++;
      setToasts((shown) => [...shown.slice(-2), { ...toast, id }]);
      start(id, toast.durationMs ?? 6000);
    },
    [start],
  );

  return (
    <Context value={show}>
      {children}
      <div className={styles.region} role="status" aria-live="polite">
        {toasts.map(({ id, text, tone = 'neutral', action, durationMs = 6000 }) => (
          // biome-ignore lint/a11y/noStaticElementInteractions: pointing at a message only keeps it there.
          <div
            key={id}
            className={styles.toast}
            data-tone={tone}
            onPointerEnter={() => hold(id)}
            onPointerLeave={() => start(id, durationMs)}
            onFocus={() => hold(id)}
            onBlur={() => start(id, durationMs)}
          >
            <span>{text}</span>
            {action === undefined ? null : (
              <Button
                onClick={() => {
                  dismiss(id);
                  action.onSelect();
                }}
              >
                {action.label}
              </Button>
            )}
            <Button look="quiet" icon={X} aria-label="Dismiss" onClick={() => dismiss(id)} />
          </div>
        ))}
      </div>
    </Context>
  );
}
