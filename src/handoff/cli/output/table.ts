import { type Colour, cut, oneLine, textWidth } from './text.ts';
import type { Line } from './writer.ts';

/** A column of a table. On a narrow terminal the last columns are left out. */
export interface Column<Row> {
  readonly title: string;
  value(row: Row): string | number | boolean | null | undefined;
  /** The width to which values may be cut; left out: they are not cut. */
  readonly least?: number;
  colour?(row: Row): Colour | undefined;
}

const gap = 2;

/** A table as lines, cut to the width of the terminal if there is one. */
export function tableLines<Row>(columns: readonly Column<Row>[], rows: readonly Row[], maxWidth: number | undefined): Line[] {
  const cells = rows.map((row) => columns.map((column) => textOf(column.value(row))));
  const natural = columns.map((column, index) => Math.max(column.title.length, ...cells.map((line) => textWidth(line[index]!))));
  const widths = maxWidth === undefined ? natural : fit(columns, natural, maxWidth);
  const line = (values: readonly string[], paint: (index: number) => Colour | undefined): Line =>
    widths.flatMap((width, index) => {
      const text = cut(values[index]!, width);
      const padding = index === widths.length - 1 ? '' : ' '.repeat(width - textWidth(text) + gap);
      return [{ text, colour: paint(index) }, padding];
    });
  return [
    line(
      columns.map(({ title }) => title),
      () => 'bold',
    ),
    ...cells.map((values, row) => line(values, (index) => columns[index]?.colour?.(rows[row]!))),
  ];
}

/** The widths of the columns that fit: each gets its least width, then the remaining width goes to the columns from left to right. */
function fit<Row>(columns: readonly Column<Row>[], natural: readonly number[], maxWidth: number): number[] {
  const least = columns.map((column, index) => Math.min(natural[index]!, column.least ?? natural[index]!));
  let shown = columns.length;
  const needed = () => least.slice(0, shown).reduce((sum, width) => sum + width, gap * (shown - 1));
  while (shown > 1 && needed() > maxWidth) shown -= 1;
  const widths = least.slice(0, shown);
  let left = Math.max(0, maxWidth - needed());
  widths.forEach((width, index) => {
    const more = Math.min(left, natural[index]! - width);
    widths[index] = width + more;
    left -= more;
  });
  if (shown === 1) widths[0] = Math.min(widths[0]!, maxWidth);
  return widths;
}

/** A value on one line; a dash for an empty one. */
function textOf(value: string | number | boolean | null | undefined): string {
  if (value === null || value === undefined || value === '') return '-';
  return oneLine(String(value));
}

/** Names and values, one pair per line; pairs without a value are left out. */
export function pairLines(pairs: readonly (readonly [string, string | number | boolean | null | undefined])[]): string[] {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== '');
  const width = Math.max(...known.map(([name]) => name.length));
  return known.map(([name, value]) => `${name.padEnd(width)}  ${textOf(value)}`);
}
