import type { ReactNode } from 'react';

import { Callout, type Tone } from './feedback.tsx';
import styles from './notes.module.css';

interface Note {
  code?: string;
  field?: string | null;
  detail: string;
}

interface NotesProps {
  notes: readonly Note[];
  tone: Exclude<Tone, 'neutral'>;
  title?: ReactNode;
  /** Announced at once by screen readers. */
  alert?: boolean;
  actions?: ReactNode;
}

/** A list of faults, warnings or findings. Renders nothing if there are none. */
export function Notes({ notes, ...callout }: NotesProps) {
  if (notes.length === 0) return null;
  return (
    <Callout {...callout}>
      <ul className={styles.notes}>
        {notes.map(({ code, field, detail }) => (
          <li key={`${code} ${field} ${detail}`}>{detail}</li>
        ))}
      </ul>
    </Callout>
  );
}
