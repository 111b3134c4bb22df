import { type KeyboardEvent, type PointerEvent, useState } from 'react';

import styles from './hours.module.css';

/** One line or one part of the columns of a plot. */
export interface HourSeries {
  name: string;
  /** A colour token such as `--series-1`. */
  color: string;
  values: readonly number[];
}

interface HourPlotProps {
  /** What the plot shows: the name of a slider over its hours for screen readers. The page has the figures as a table, too. */
  label: string;
  /** When each value begins, one an hour, oldest first. */
  hours: readonly string[];
  series: readonly HourSeries[];
  /** Whether the values of an hour are stacked as one column; otherwise each series is a line. */
  stacked?: boolean;
}

const width = 600;
const height = 120;

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat('en-GB', { weekday: 'short', day: 'numeric' });

/** The least round number that is not below the highest value, for the end of the axis. */
function roundEnd(highest: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, highest)));
  return [1, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((end) => end >= highest) ?? highest;
}

/** Where a key moves to from an hour. */
const moves: Readonly<Record<string, (index: number, last: number) => number>> = {
  ArrowLeft: (index) => index - 1,
  ArrowRight: (index) => index + 1,
  Home: () => 0,
  End: (_, last) => last,
};

/**
 * Values by hour: lines, or stacked columns. The legend has the present or total value of each series, and those of one hour while
 * the pointer is over it or the arrow keys choose it.
 */
export function HourPlot({ label, hours, series, stacked = false }: HourPlotProps) {
  const totals = hours.map((_, index) => series.reduce((sum, { values }) => sum + (values[index] ?? 0), 0));
  const end = roundEnd(Math.max(1, ...(stacked ? totals : series.flatMap(({ values }) => values))));
  const isLong = hours.length > 48;
  const at = (index: number) => {
    const moment = new Date(hours[index]!);
    return isLong ? day.format(moment) : clock.format(moment);
  };
  const last = hours.length - 1;
  const middle = Math.floor(last / 2);
  const [chosen, setChosen] = useState<number>();
  const index = chosen === undefined ? undefined : Math.min(Math.max(chosen, 0), last);
  const figureOf = ({ values }: HourSeries) => {
    if (index !== undefined) return values[index] ?? 0;
    return stacked ? values.reduce((sum, value) => sum + value, 0) : (values.at(-1) ?? 0);
  };
  const hour = index === undefined ? undefined : `${isLong ? `${at(index)}, ` : ''}${clock.format(new Date(hours[index]!))}`;
  const point = ({ clientX, currentTarget }: PointerEvent<HTMLElement>) => {
    const { left, width: wide } = currentTarget.getBoundingClientRect();
    setChosen(Math.floor(((clientX - left) / Math.max(1, wide)) * hours.length));
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === 'Escape') setChosen(undefined);
    const move = moves[event.key];
    if (move === undefined) return;
    event.preventDefault();
    setChosen(Math.min(Math.max(move(index ?? last + 1, last), 0), last));
  };
  return (
    <figure className={styles.plot}>
      <figcaption className={styles.legend}>
        {series.map((one) => (
          <span key={one.name}>
            <i style={{ background: `var(${one.color})` }} />
            {one.name} <b className="tabular">{figureOf(one)}</b>
          </span>
        ))}
        {hour === undefined ? null : <span className="tabular">from {hour}</span>}
      </figcaption>
      <div className={styles.area}>
        <span className={styles.most}>{end}</span>
        <span className={styles.least}>0</span>
        <div
          role="slider"
          tabIndex={0}
          aria-label={label}
          aria-valuemin={0}
          aria-valuemax={last}
          aria-valuenow={index ?? last}
          aria-valuetext={`${hour ?? 'now'}: ${series.map((one) => `${one.name} ${figureOf(one)}`).join(', ')}`}
          className={styles.slider}
          onPointerMove={point}
          onPointerDown={point}
          onPointerLeave={() => setChosen(undefined)}
          onKeyDown={press}
          onBlur={() => setChosen(undefined)}
        >
          <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true">
            {index === undefined ? null : (
              <rect x={(index * width) / hours.length} width={width / hours.length} y={0} height={height} className={styles.chosen} />
            )}
            <line x1={0} x2={width} y1={height / 2} y2={height / 2} className={styles.grid} />
            {stacked ? <Columns series={series} end={end} /> : <Lines series={series} end={end} />}
          </svg>
        </div>
      </div>
      <div className={styles.times} aria-hidden="true">
        <span>{at(0)}</span>
        <span>{at(middle)}</span>
        <span>now</span>
      </div>
    </figure>
  );
}

function Columns({ series, end }: { series: readonly HourSeries[]; end: number }) {
  const slot = width / Math.max(1, series[0]?.values.length ?? 1);
  const tops = new Array<number>(series[0]?.values.length ?? 0).fill(height);
  return series.map(({ name, color, values }) => (
    <g key={name} style={{ fill: `var(${color})` }}>
      {values.map((value, index) => {
        if (value === 0) return null;
        const tall = (value / end) * height;
        tops[index] = tops[index]! - tall;
        // biome-ignore lint/suspicious/noArrayIndexKey: an hour is identified by its place.
        return <rect key={index} x={index * slot + slot * 0.12} width={slot * 0.76} y={tops[index]} height={tall} />;
      })}
    </g>
  ));
}

/** Steps, since a level holds until it changes. */
function Lines({ series, end }: { series: readonly HourSeries[]; end: number }) {
  return series.map(({ name, color, values }) => {
    const slot = width / Math.max(1, values.length);
    const y = (value: number) => height - 1.5 - (value / end) * (height - 3);
    const path = values.map((value, index) => `${index === 0 ? 'M' : 'L'}${index * slot} ${y(value)} H${(index + 1) * slot}`).join(' ');
    return <path key={name} d={path} className={styles.line} style={{ stroke: `var(${color})` }} />;
  });
}
