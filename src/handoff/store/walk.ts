import { sql } from 'kysely';

/**
 * The way of a job over rows, from one round to the next. A round continues behind the rows of the one before, so that rows whose
 * work fails keep no other from theirs.
 */
export class Walk<Row> {
  #last: Row | undefined;

  /** The row behind which the next round begins; undefined: it begins with the first. */
  get last(): Row | undefined {
    return this.#last;
  }

  /** Notes what a round found; `isFull`: there may be more behind. Returns whether another round may find some now. */
  found(rows: readonly Row[], isFull: boolean): boolean {
    const isFirst = this.#last === undefined;
    this.#last = isFull ? rows.at(-1) : undefined;
    // Others may have come meanwhile before the row where this round began.
    return isFull || !isFirst;
  }
}

/** The condition that a row comes behind one with these values in these columns, by which rows are ordered; undefined: any row does. */
export function behind(place: Readonly<Record<string, string | number>> | undefined) {
  if (place === undefined) return sql<boolean>`1 = 1`;
  return sql<boolean>`(${sql.join(Object.keys(place).map((column) => sql.ref(column)))}) > (${sql.join(Object.values(place))})`;
}
