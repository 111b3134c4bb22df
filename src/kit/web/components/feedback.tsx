import { CircleAlert, CircleCheck, Info, type LucideIcon, TriangleAlert } from 'lucide-react';
import type { ReactNode } from 'react';

import styles from './feedback.module.css';

export type Tone = 'good' | 'warn' | 'bad' | 'info' | 'neutral';

const icons: Record<Exclude<Tone, 'neutral'>, LucideIcon> = { good: CircleCheck, warn: TriangleAlert, bad: CircleAlert, info: Info };

/** A word on a coloured background. The word carries the meaning, not the colour alone. */
export function Badge({ tone = 'neutral', children }: { tone?: Tone; children: ReactNode }) {
  return <span className={`${styles.badge} ${styles[tone]}`}>{children}</span>;
}

export interface CalloutProps {
  tone: Exclude<Tone, 'neutral'>;
  title?: ReactNode;
  children?: ReactNode;
  /** Announced at once by screen readers. */
  alert?: boolean;
  actions?: ReactNode;
}

/** A message in the page: a warning, an error, a result. */
export function Callout({ tone, title, children, alert = false, actions }: CalloutProps) {
  const Icon = icons[tone];
  return (
    <div className={`${styles.callout} ${styles[tone]}`} role={alert ? 'alert' : undefined}>
      <Icon size={16} aria-hidden="true" />
      <div className={styles.calloutText}>
        {title === undefined ? null : <p className={styles.calloutTitle}>{title}</p>}
        {children}
      </div>
      {actions === undefined ? null : <div className={styles.calloutActions}>{actions}</div>}
    </div>
  );
}

interface EmptyProps {
  title: string;
  children?: ReactNode;
  actions?: ReactNode;
  /** 1 if it is the only content of the page. */
  level?: 1 | 2;
}

/** A placeholder for an empty list: what will appear here and how to create it. */
export function Empty({ title, children, actions, level = 2 }: EmptyProps) {
  const Heading = level === 1 ? 'h1' : 'h2';
  return (
    <div className={styles.empty}>
      <Heading>{title}</Heading>
      {children === undefined ? null : <div className={styles.emptyText}>{children}</div>}
      {actions === undefined ? null : <div className={styles.emptyActions}>{actions}</div>}
    </div>
  );
}

/** Grey lines of the height of the content being loaded, so that the layout does not jump. */
export function Skeleton({ lines = 3, height = 'var(--control)' }: { lines?: number; height?: string }) {
  return (
    <div className={styles.skeleton} aria-busy="true" role="status">
      <span className="visually-hidden">Loading</span>
      {Array.from({ length: lines }, (_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines are identical and never move.
        <div key={index} style={{ height }} />
      ))}
    </div>
  );
}
