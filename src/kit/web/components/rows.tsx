import { useVirtualizer } from '@tanstack/react-virtual';
import { type CSSProperties, type ReactNode, useEffect, useRef } from 'react';

import styles from './rows.module.css';

interface RowsProps {
  /** What the list has, for screen readers. */
  label: string;
  count: number;
  /** The height of a row in pixels, with its border. */
  height: number;
  keyOf: (index: number) => number | string;
  row: (index: number) => ReactNode;
  /** Whether a row is higher than the others, so that it has to be measured. */
  isHigher?: (index: number) => boolean;
  /** Called when other rows are rendered, with the first and the last one. */
  onRange?: (first: number, last: number) => void;
}

/** A list that renders only visible rows, so that thousands scroll smoothly. `keyOf` must be stable, or all positions are computed anew. */
export function Rows({ label, count, height, keyOf, row, isHigher = () => false, onRange }: RowsProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    getItemKey: keyOf,
    overscan: 6,
  });
  const items = rows.getVirtualItems();
  const [first, last] = [items[0]?.index ?? 0, items.at(-1)?.index ?? 0];
  useEffect(() => onRange?.(first, last), [first, last, onRange]);
  return (
    <section
      ref={scroller}
      className={styles.scroller}
      style={{ '--rows-height': `${rows.getTotalSize()}px` } as CSSProperties}
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard (WCAG 2.1.1).
      tabIndex={0}
    >
      <ul className={styles.rows}>
        {items.map(({ index, key, start }) => (
          <li
            key={key}
            // The height of other rows is known, and measuring would force a layout.
            ref={isHigher(index) ? rows.measureElement : undefined}
            data-index={index}
            className={index === count - 1 ? `${styles.row} ${styles.last}` : styles.row}
            style={{ transform: `translateY(${start}px)` }}
            aria-setsize={count}
            aria-posinset={index + 1}
          >
            {row(index)}
          </li>
        ))}
      </ul>
    </section>
  );
}
