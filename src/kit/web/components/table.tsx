import {
  type ColumnDef,
  createPaginatedRowModel,
  createSortedRowModel,
  type Header,
  type RowData,
  rowPaginationFeature,
  rowSortingFeature,
  tableFeatures,
  useTable,
} from '@tanstack/react-table';
import { ArrowDown, ArrowUp, ChevronsUpDown } from 'lucide-react';
import { type ReactNode, useMemo } from 'react';

import { count } from '../format.ts';
import { useMedia } from '../media.ts';
import { Button } from './button.tsx';
import { ScrollX } from './layout.tsx';
import styles from './table.module.css';

export interface Column<Row> {
  /** The heading, and the column's key. */
  name: string;
  cell(row: Row): ReactNode;
  /** The value that rows are sorted by; left out: the table can't be sorted by this column. Null comes last. */
  by?: (row: Row) => string | number | null | undefined;
  /** Aligns numbers to the right, so that their digits line up. */
  number?: boolean;
  /** Uses tabular digits, for times and similar texts. */
  tabular?: boolean;
  muted?: boolean;
  /** Shows the heading to screen readers only. */
  nameHidden?: boolean;
}

/** What a table is given. */
export interface TableProps<Row> {
  /** What the table lists, for screen readers. */
  label: string;
  columns: readonly Column<Row>[];
  /** All rows, or one page of those that a server has in an order of its own; then no column has `by`. */
  rows: readonly Row[];
  keyOf: (row: Row) => string;
  /**
   * In a narrow window shows each row as a list of names and values, so that the last columns stay in sight; `early`: in a window of
   * medium width, too, for many columns of long words.
   */
  stacks?: boolean | 'early';
}

const features = tableFeatures({
  rowSortingFeature,
  rowPaginationFeature,
  sortedRowModel: createSortedRowModel(),
  paginatedRowModel: createPaginatedRowModel(),
});

/** The rows of one page of a table that has all rows. */
const perPage = 50;

const compare = new Intl.Collator('en', { numeric: true }).compare;

/** The order of two values. */
const inOrder = (one: unknown, other: unknown): number =>
  typeof one === 'number' && typeof other === 'number' ? one - other : compare(String(one), String(other));

/** The column as TanStack Table describes it. */
const definitionOf = <Row extends RowData>(column: Column<Row>): ColumnDef<typeof features, Row> => ({
  id: column.name,
  // Null would be sorted as a text.
  accessorFn: (row) => column.by?.(row) ?? undefined,
  enableSorting: column.by !== undefined,
  sortFn: (one, other, id) => inOrder(one.getValue(id), other.getValue(id)),
  sortUndefined: 'last',
});

/** A table whose first column names the row. Headings of columns that have `by` sort it; it has pages if it has many rows. */
export function Table<Row extends RowData>({ label, columns, rows, keyOf, stacks = false }: TableProps<Row>) {
  const classOf = ({ number, tabular, muted }: Column<Row>) =>
    [number ? styles.number : '', number || tabular ? `tabular ${styles.tabular}` : '', muted ? styles.muted : ''].join(' ');
  const isNarrow = useMedia(stacks === 'early' ? '(max-width: 56rem)' : '(max-width: 40rem)');
  const isWhole = columns.some(({ by }) => by !== undefined);
  const definitions = useMemo(() => columns.map(definitionOf), [columns]);
  const table = useTable({
    features,
    columns: definitions,
    data: rows,
    getRowId: keyOf,
    initialState: { pagination: { pageIndex: 0, pageSize: perPage } },
    manualPagination: !isWhole,
    // Lists are read again from time to time.
    autoResetPageIndex: false,
  });
  const headers = new Map(table.getHeaderGroups()[0]!.headers.map((header) => [header.id, header]));
  const last = Math.max(0, Math.ceil(rows.length / perPage) - 1);
  const page = Math.min(table.state.pagination.pageIndex, last);
  return (
    <>
      <ScrollX label={label}>
        <table className={stacks !== false && isNarrow ? `${styles.table} ${styles.stacks}` : styles.table}>
          <caption className="visually-hidden">{label}</caption>
          <thead>
            <tr>
              {columns.map((column) => (
                <Heading key={column.name} column={column} header={headers.get(column.name)!} className={classOf(column)} />
              ))}
            </tr>
          </thead>
          <tbody>
            {table.getRowModel().rows.map(({ id, original: row }) => (
              <tr key={id}>
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
      {isWhole ? (
        <Pager page={page} perPage={perPage} total={rows.length} names={['Previous', 'Next']} onPage={(next) => table.setPageIndex(next)} />
      ) : null}
    </>
  );
}

const orders = { asc: 'ascending', desc: 'descending' } as const;
const arrows = { asc: ArrowUp, desc: ArrowDown };

interface HeadingProps<Row extends RowData> {
  column: Column<Row>;
  header: Header<typeof features, Row>;
  className: string;
}

/** The heading of a column: a button if the table can be sorted by it. */
function Heading<Row extends RowData>({ column: { name, nameHidden, by }, header, className }: HeadingProps<Row>) {
  const sorted = header.column.getIsSorted();
  const Arrow = sorted === false ? ChevronsUpDown : arrows[sorted];
  return (
    <th scope="col" className={className} aria-sort={sorted === false ? undefined : orders[sorted]}>
      {nameHidden ? (
        <span className="visually-hidden">{name}</span>
      ) : by === undefined ? (
        name
      ) : (
        <button type="button" className={styles.sort} onClick={() => header.column.toggleSorting()}>
          {name}
          <Arrow size={13} aria-hidden="true" className={sorted === false ? styles.unsorted : undefined} />
        </button>
      )}
    </th>
  );
}

interface PagerProps {
  /** From 0. */
  page: number;
  perPage: number;
  total: number;
  /** Whether `total` is only a lower bound. */
  isLeast?: boolean;
  /** The names of the buttons to the page before and the page after. */
  names?: readonly [before: string, after: string];
  onPage: (page: number) => void;
}

/** Shows the range of rows and buttons to other pages. Renders nothing if all rows fit on one page. */
export function Pager({ page, perPage, total, isLeast = false, names = ['Newer', 'Older'], onPage }: PagerProps) {
  if (total <= perPage) return null;
  const last = Math.min(total, (page + 1) * perPage);
  return (
    <nav className={styles.pager} aria-label="Pages">
      <span className="muted tabular" role="status">
        {count(page * perPage + 1)} to {count(last)} of {isLeast ? 'at least ' : ''}
        {count(total)}
      </span>
      <Button aria-disabled={page === 0} onClick={() => onPage(page - 1)}>
        {names[0]}
      </Button>
      <Button aria-disabled={last === total} onClick={() => onPage(page + 1)}>
        {names[1]}
      </Button>
    </nav>
  );
}
