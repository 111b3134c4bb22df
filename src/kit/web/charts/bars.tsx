import { Bar, BarChart, Cell, LabelList, ResponsiveContainer, XAxis, YAxis } from 'recharts';

import styles from './bars.module.css';

export interface BarItem {
  name: string;
  value: number;
  /** The value with its unit, as shown. */
  text: string;
  /** A colour token such as `--series-1`. */
  color?: string;
}

interface BarsProps {
  /** What the chart shows, for screen readers, which read the values as a list. */
  label: string;
  items: readonly BarItem[];
}

/** Horizontal bars with their values beside them. */
export function Bars({ label, items }: BarsProps) {
  const longest = Math.max(...items.map(({ name }) => name.length));
  return (
    <figure className={styles.figure} aria-label={label}>
      <div aria-hidden="true" style={{ height: `${items.length * 30 + 8}px` }}>
        <ResponsiveContainer width="100%" height="100%">
          <BarChart
            data={[...items]}
            layout="vertical"
            margin={{ top: 0, right: 96, bottom: 0, left: 0 }}
            barSize={16}
            accessibilityLayer={false}
          >
            <XAxis type="number" hide domain={[0, 'dataMax']} />
            <YAxis
              type="category"
              dataKey="name"
              width={Math.min(140, Math.max(44, longest * 7 + 12))}
              axisLine={false}
              tickLine={false}
              interval={0}
              tick={{ fill: 'var(--text-muted)', fontSize: 12 }}
            />
            <Bar dataKey="value" radius={3} isAnimationActive={false} minPointSize={2}>
              {items.map(({ name, value, color = '--series-1' }) => (
                <Cell key={name} fill={value === 0 ? 'transparent' : `var(${color})`} />
              ))}
              <LabelList dataKey="text" position="right" fill="var(--text)" fontSize={12} />
            </Bar>
          </BarChart>
        </ResponsiveContainer>
      </div>
      <ul className="visually-hidden">
        {items.map(({ name, text }) => (
          <li key={name}>
            {name}: {text}
          </li>
        ))}
      </ul>
    </figure>
  );
}
