import styles from './hours.module.css';

/** One line or one part of the columns of a plot. */
export interface HourSeries {
  name: string;
  /** A colour token such as `--series-1`. */
  color: string;
  values: readonly number[];
}

interface HourPlotProps {
  /** What the plot shows. Screen readers get it as the name of a picture whose figures the page has elsewhere as a table. */
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

/** Values by hour: lines, or stacked columns, with a legend that has the present or total value of each series. */
export function HourPlot({ label, hours, series, stacked = false }: HourPlotProps) {
  const totals = hours.map((_, index) => series.reduce((sum, { values }) => sum + (values[index] ?? 0), 0));
  const end = roundEnd(Math.max(1, ...(stacked ? totals : series.flatMap(({ values }) => values))));
  const isLong = hours.length > 48;
  const at = (index: number) => {
    const moment = new Date(hours[index]!);
    return isLong ? day.format(moment) : clock.format(moment);
  };
  const middle = Math.floor((hours.length - 1) / 2);
  return (
    <figure className={styles.plot}>
      <figcaption className={styles.legend}>
        {series.map(({ name, color, values }) => (
          <span key={name}>
            <i style={{ background: `var(${color})` }} />
            {name} <b className="tabular">{stacked ? values.reduce((sum, value) => sum + value, 0) : (values.at(-1) ?? 0)}</b>
          </span>
        ))}
      </figcaption>
      <div className={styles.area}>
        <span className={styles.most}>{end}</span>
        <span className={styles.least}>0</span>
        <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
          <line x1={0} x2={width} y1={height / 2} y2={height / 2} className={styles.grid} />
          {stacked ? <Columns series={series} end={end} /> : <Lines series={series} end={end} />}
        </svg>
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
