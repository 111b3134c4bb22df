import type { ReactNode } from 'react';

import { count } from '../format.ts';
import { useMedia } from '../media.ts';
import { Button } from './button.tsx';
import { ScrollX } from './layout.tsx';
import styles from './table.module.css';

export interface Column<Row> {
  /** The heading, and the column's key. */
  name: string;
  cell(row: Row): ReactNode;
  /** Aligns numbers to the right, so that their digits line up. */
  number?: boolean;
  /** Uses tabular digits, for times and similar texts. */
  tabular?: boolean;
  muted?: boolean;
  /** Shows the heading to screen readers only. */
  nameHidden?: boolean;
}

interface TableProps<Row> {
  /** What the table lists, for screen readers. */
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string;
  /**
   * In a narrow window shows each row as a list of names and values, so that the last columns stay in sight; `early`: in a window of
   * medium width, too, for many columns of long words.
   */
  stacks?: boolean | 'early';
}

/** A table whose first column names the row. */
export function Table<Row>({ label, columns, rows, keyOf, stacks = false }: TableProps<Row>) {
  const classOf = ({ number, tabular, muted }: Column<Row>) =>
    [number ? styles.number : '', number || tabular ? `tabular ${styles.tabular}` : '', muted ? styles.muted : ''].join(' ');
  const isNarrow = useMedia(stacks === 'early' ? '(max-width: 56rem)' : '(max-width: 40rem)');
  return (
    <ScrollX label={label}>
      <table className={stacks !== false && isNarrow ? `${styles.table} ${styles.stacks}` : styles.table}>
        <caption className="visually-hidden">{label}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" className={classOf(column)}>
                {column.nameHidden ? <span className="visually-hidden">{column.name}</span> : column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column, index) =>
                index === 0 ? (
                  <th key={column.name} scope="row" className={classOf(column)}>
                    {column.cell(row)}
                  </th>
                ) : (
                  <td key={column.name} className={classOf(column)} data-name={column.nameHidden ? undefined : column.name}>
                    {column.cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollX>
  );
}

interface PagerProps {
  /** From 0. */
  page: number;
  perPage: number;
  total: number;
  /** Whether `total` is only a lower bound. */
  isLeast?: boolean;
  onPage: (page: number) => void;
}

/** Shows the range of rows, newest first, and buttons to other pages. Renders nothing if all rows fit on one page. */
export function Pager({ page, perPage, total, isLeast = false, onPage }: PagerProps) {
  if (total <= perPage) return null;
  const last = Math.min(total, (page + 1) * perPage);
  return (
    <nav className={styles.pager} aria-label="Pages">
      <span className="muted tabular" role="status">
        {count(page * perPage + 1)} to {count(last)} of {isLeast ? 'at least ' : ''}
        {count(total)}
      </span>
      <Button aria-disabled={page === 0} onClick={() => onPage(page - 1)}>
        Newer
      </Button>
      <Button aria-disabled={last === total} onClick={() => onPage(page + 1)}>
        Older
      </Button>
    </nav>
  );
}
