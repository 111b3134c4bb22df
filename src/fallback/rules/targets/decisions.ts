import { type Condition, conditions } from '../../model/chain.ts';
import { type FailureKind, usualCondition, usualStatus } from '../conditions.ts';
import type { Draft } from './section.ts';

/** What an imported file does when a provider fails in one way. */
export interface Cell {
  /** The further calls of the provider. */
  readonly retries: number;
  /** What follows: the rest of the order, the end, or these providers. */
  readonly next: 'order' | 'end' | readonly string[];
}

/** A provider with what follows each of its failures. */
export interface Row {
  readonly name: string;
  readonly cells: readonly { readonly failing: FailureKind; readonly cell: Cell }[];
}

interface Group {
  readonly condition: Condition | 'any';
  readonly cell: Cell;
  readonly names: string[];
  readonly statuses: number[];
}

/**
 * The rules of a chain that decides as the rows say. `waits` are the other fields of rules that retry. A failure with the usual
 * status of its condition stands for all statuses that have no cell of their own. A row has no cells for conditions that its
 * provider can't have.
 */
export function rulesOf(rows: readonly Row[], waits: Draft): Draft[] {
  const usual = new Map(rows.map((row) => [row, usualCells(row)]));
  const others = new Map(rows.map((row) => [row, usual.get(row)!.get(usualCondition)!]));
  const named = grouped(
    rows.flatMap((row) =>
      [...usual.get(row)!].flatMap(([condition, cell]) => (same(cell, others.get(row)!) ? [] : [{ row, condition, cell }])),
    ),
  ).map((group) => {
    const isForAll = rows.every((row) => {
      const cell = usual.get(row)!.get(group.condition as Condition);
      return cell === undefined || same(cell, group.cell);
    });
    return isForAll ? { ...group, names: rows.map(({ name }) => name) } : group;
  });
  const coded = grouped(
    rows.flatMap((row) =>
      row.cells.flatMap(({ failing: { condition, status_code: status }, cell }) =>
        status === null || status === usualStatus(condition) || same(cell, usual.get(row)!.get(condition)!)
          ? []
          : [{ row, condition, cell, status }],
      ),
    ),
  );
  const rest = grouped(rows.map((row) => ({ row, condition: 'any' as const, cell: others.get(row)! })));
  // A rule for all providers comes last, since the first that fits decides.
  const ordered = rest.toSorted((one, other) => one.names.length - other.names.length);
  const largest = ordered.at(-1)!;
  return [...coded, ...inOrder(named), ...ordered].map((group) =>
    ruleOf(group, group === largest ? [] : group.names.length === rows.length ? [] : group.names, waits),
  );
}

const usualCells = ({ cells }: Row) =>
  new Map(
    conditions.flatMap((condition) => {
      const usual = cells.find(({ failing }) => failing.condition === condition && failing.status_code === usualStatus(condition));
      return usual === undefined ? [] : [[condition, usual.cell] as const];
    }),
  );

const same = (one: Cell, other: Cell) => one.retries === other.retries && String(one.next) === String(other.next);

const inOrder = (groups: readonly Group[]) =>
  groups.toSorted((one, other) => conditions.indexOf(one.condition as Condition) - conditions.indexOf(other.condition as Condition));

function grouped(entries: readonly { row: Row; condition: Condition | 'any'; cell: Cell; status?: number }[]): Group[] {
  const groups = [...Map.groupBy(entries, ({ condition, cell, status }) => JSON.stringify([condition, cell, status])).values()].map(
    (list) => {
      const [{ condition, cell, status }] = list as [(typeof list)[number]];
      return { condition, cell, names: list.map(({ row }) => row.name), statuses: status === undefined ? [] : [status] };
    },
  );
  // Statuses that are decided alike share a rule.
  return [...Map.groupBy(groups, ({ condition, cell, names }) => JSON.stringify([condition, cell, names])).values()].map((list) => ({
    ...list[0]!,
    statuses: list.flatMap(({ statuses }) => statuses),
  }));
}

function ruleOf({ condition, cell: { retries, next }, statuses }: Group, names: readonly string[], waits: Draft): Draft {
  const scope = { ...(names.length === 0 ? {} : { providers: names }), ...(statuses.length === 0 ? {} : { status_codes: statuses }) };
  const to = typeof next === 'string' ? {} : { to: next };
  if (retries === 0) return { condition, action: next === 'end' ? 'fail' : 'failover', ...scope, ...to };
  return { condition, action: 'retry', max_retries: retries, ...scope, ...waits, ...(next === 'end' ? { then: 'fail' } : to) };
}
