import { Callout, type CalloutProps } from './feedback.tsx';
import styles from './notes.module.css';

interface Note {
  code?: string;
  field?: string | null;
  detail: string;
}

/** A list of faults, warnings or findings. Renders nothing if there are none. */
export function Notes({ notes, ...callout }: Omit<CalloutProps, 'children'> & { notes: readonly Note[] }) {
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
