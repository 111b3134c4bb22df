import type { Compared } from './rounds.ts';

/** A target: the required value and a stretch goal. */
export interface Target {
  /** Whether a higher value is better (a ratio of speeds) or a lower one (a ratio of times). */
  better: 'more' | 'less';
  required: number;
  stretch?: number;
}

/** A line of the report. */
export interface Figure {
  /** The name of the measurement. */
  name: string;
  perSecond?: number;
  /** In milliseconds. */
  p50?: number;
  p99?: number;
  /** CPU time per request, in microseconds. */
  cpu?: number;
  /** The reference it is compared with, with its figures. */
  against?: string;
  /** The value that the target applies to: a ratio, or an amount whose unit is in the name. */
  value?: number;
  /** The same ratio for CPU times. */
  cpuValue?: number;
  target?: Target | undefined;
}

/** The figure of a comparison with the named ceiling. */
export function figureOf(name: string, ceiling: string, compared: Compared, target?: Target): Figure {
  const { perSecond, p50, p99, cpu, ceilingPerSecond, ceilingCpu, ratio, cpuRatio } = compared;
  return {
    name,
    perSecond,
    p50,
    p99,
    cpu,
    against: `${ceiling}: ${digits(ceilingPerSecond)}, ${digits(ceilingCpu)} µs`,
    value: ratio,
    cpuValue: cpuRatio,
    target,
  };
}

const headings = ['Measure', 'a second', 'p50 ms', 'p99 ms', 'CPU µs', 'against', 'ratio', 'by CPU', 'target (stretch)', 'met'];

/** Whether the figure meets its target: no, yes, or stretch. */
export function verdict({ value, target }: Figure): string {
  if (value === undefined || target === undefined) return '';
  const meets = (limit: number) => (target.better === 'more' ? value >= limit : value <= limit);
  if (target.stretch !== undefined && meets(target.stretch)) return 'stretch';
  return meets(target.required) ? 'yes' : 'no';
}

/** A number rounded to its significant digits. */
export function digits(value: number | undefined): string {
  if (value === undefined) return '';
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en-US');
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2);
}

function cells(figure: Figure): string[] {
  const { name, perSecond, p50, p99, cpu, against = '', value, cpuValue, target } = figure;
  const wanted = target === undefined ? '' : targetText(target);
  return [
    name,
    digits(perSecond),
    digits(p50),
    digits(p99),
    digits(cpu),
    against,
    digits(value),
    digits(cpuValue),
    wanted,
    verdict(figure),
  ];
}

/** A figure in one line, for progress output. */
export function lineOf(figure: Figure): string {
  const { name, perSecond, value, target } = figure;
  const speed = perSecond === undefined ? '' : `${digits(perSecond)} a second; `;
  return `${name}: ${speed}${digits(value)}${target === undefined ? '' : `, target ${targetText(target)}`}`;
}

function targetText({ better, required, stretch }: Target): string {
  return `${better === 'more' ? '>=' : '<='} ${required}${stretch === undefined ? '' : ` (${stretch})`}`;
}

/** The figures as a Markdown table with aligned columns, readable in a terminal too. */
export function tableOf(figures: readonly Figure[]): string {
  const rows = [headings, ...figures.map(cells)];
  const widths = headings.map((_, column) => Math.max(3, ...rows.map((row) => row[column]!.length)));
  const line = (row: readonly string[]) => `| ${row.map((cell, column) => cell.padEnd(widths[column]!)).join(' | ')} |`;
  return [line(headings), line(widths.map((width) => '-'.repeat(width))), ...figures.map((figure) => line(cells(figure)))].join('\n');
}
