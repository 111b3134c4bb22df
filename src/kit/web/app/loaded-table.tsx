import type { ReactNode } from 'react';

import { Table, type TableProps } from '../components/table.tsx';
import { Load, type Loading } from './load.tsx';

interface LoadedTableProps<Row> extends Omit<TableProps<Row>, 'rows'> {
  query: Loading<readonly Row[]>;
  /** What is shown if there are no rows; left out: the headings alone. */
  empty?: ReactNode;
}

/** A table of loaded rows, which its label names: placeholder lines while they load, and a message on failure. */
export function LoadedTable<Row extends object>({ query, empty, ...table }: LoadedTableProps<Row>) {
  return (
    <Load query={query} what={`The ${table.label.toLowerCase()}`}>
      {(rows) => (rows.length === 0 && empty !== undefined ? empty : <Table {...table} rows={rows} />)}
    </Load>
  );
}
