import type { Terminal } from '../terminal.ts';
import { type Colour, coloured, cut, printable, textWidth } from './text.ts';

/** A column of a table: those that matter come first, and the last ones are left out where the terminal is narrow. */
export interface Column<Row> {
  readonly title: string;
  value(row: Row): string | number | boolean | null | undefined;
  /** What may be cut, and down to how many columns. */
  readonly least?: number;
  colour?(row: Row): Colour | undefined;
}

const gap = 2;

/** Whether a stream may have colours: a terminal, and nobody said NO_COLOR (no-color.org). */
export function mayColour({ environment, stdout }: Terminal): boolean {
  return stdout.isTTY === true && !environment.NO_COLOR && environment.TERM !== 'dumb';
}

/** A table as lines: cut to the terminal's width on one, whole elsewhere. */
export function tableLines<Row>(columns: readonly Column<Row>[], rows: readonly Row[], terminal: Terminal): string[] {
  const cells = rows.map((row) => columns.map((column) => textOf(column.value(row))));
  const natural = columns.map((column, index) => Math.max(column.title.length, ...cells.map((line) => textWidth(line[index]!))));
  const widths = terminal.stdout.isTTY ? fit(columns, natural, terminal.stdout.columns || 80) : natural;
  const colours = mayColour(terminal);
  const line = (values: readonly string[], paint: (index: number) => Colour | undefined) =>
    widths
      .map((width, index) => {
        const text = cut(values[index]!, width);
        const padding = index === widths.length - 1 ? '' : ' '.repeat(width - textWidth(text));
        return (colours ? coloured(text, paint(index)) : text) + padding;
      })
      .join(' '.repeat(gap))
      .trimEnd();
  return [
    line(
      columns.map(({ title }) => title),
      () => 'bold',
    ),
    ...cells.map((values, row) => line(values, (index) => columns[index]?.colour?.(rows[row]!))),
  ];
}

/** The widths of the columns that fit: at least each one's least, then what is left to each in turn, those that can't be cut first. */
function fit<Row>(columns: readonly Column<Row>[], natural: readonly number[], room: number): number[] {
  const least = columns.map((column, index) => Math.min(natural[index]!, column.least ?? natural[index]!));
  let shown = columns.length;
  const needed = () => least.slice(0, shown).reduce((sum, width) => sum + width, gap * (shown - 1));
  while (shown > 1 && needed() > room) shown -= 1;
  const widths = least.slice(0, shown);
  let left = Math.max(0, room - needed());
  widths.forEach((width, index) => {
    const more = Math.min(left, natural[index]! - width);
    widths[index] = width + more;
    left -= more;
  });
  if (shown === 1) widths[0] = Math.min(widths[0]!, room);
  return widths;
}

/** A value on one line; a dash for none. */
export function textOf(value: string | number | boolean | null | undefined): string {
  if (value === null || value === undefined || value === '') return '-';
  return printable(String(value));
}

/** Names and values, one pair a line; pairs without a value are left out. */
export function pairLines(pairs: readonly (readonly [string, string | number | boolean | null | undefined])[]): string[] {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== '');
  const width = Math.max(...known.map(([name]) => name.length));
  return known.map(([name, value]) => `${name.padEnd(width)}  ${textOf(value)}`);
}
