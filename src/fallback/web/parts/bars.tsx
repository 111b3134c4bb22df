import styles from './bars.module.css';

interface BarItem {
  name: string;
  value: number;
  /** The value with its unit, as shown. */
  text: string;
  /** A colour token such as `--series-1`. */
  color: string;
}

interface BarsProps {
  /** What the chart shows, for screen readers, which read the values as a list. */
  label: string;
  items: readonly BarItem[];
}

/** Horizontal bars with their values beside them. */
export function Bars({ label, items }: BarsProps) {
  const most = Math.max(...items.map(({ value }) => value));
  return (
    <ul className={styles.bars} aria-label={label}>
      {items.map(({ name, value, text, color }) => (
        <li key={name}>
          <span className={styles.name}>{name}</span>
          <span className={styles.track} aria-hidden="true">
            {value === 0 ? null : <span style={{ width: `${(value / most) * 100}%`, background: `var(${color})` }} />}
          </span>
          <span className="tabular">{text}</span>
        </li>
      ))}
    </ul>
  );
}
