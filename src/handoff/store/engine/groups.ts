import { rethrow } from '../../../kit/awaitable.ts';
import { unavailable } from '../../../kit/errors.ts';
import type { Database } from '../../../kit/sql/dialect.ts';

/** The outcome of one unit of a group: its result, or the error it was refused with. */
export type Outcome<T> = { result: T } | { error: unknown };

/** The most units in one transaction. It bounds how long the next group waits. */
const maxGroup = 256;

/** A unit with more characters of input is large: its group has no other unit, so that others do not wait for several of them. */
const largeFrom = 256 * 1024;

/**
 * For how many more turns of the event loop a group collects units, as long as each turn brings another: the units share
 * the cost of one commit. A unit that arrives alone does not wait.
 */
const moreTurns = 2;

/**
 * The same for units that no request waits for, such as the outcomes of deliveries, so that many of them cost few commits and
 * flushes.
 */
const backgroundTurns = 16;

/** The most attempts of a single unit that conflicts with another instance's transaction. */
const maxAttempts = 3;

/** A group that is committed. */
export interface Committed {
  /** The outcomes of its units, in their order. */
  readonly outcomes: readonly Outcome<unknown>[];
  /** Called once after the commit and before its units are answered, to tell listeners. An error of it ends the process; the group is not written again. */
  readonly tell: () => void;
}

interface Waiting<Unit> {
  unit: Unit;
  resolve(value: unknown): void;
  reject: (error: unknown) => void;
}

interface GroupCommitDependencies<Unit> {
  readonly database: Pick<Database<unknown>, 'isUnavailable' | 'isConflict'>;
  /** Writes units in one transaction; resolves once it is committed. */
  readonly write: (units: readonly Unit[]) => Promise<Committed>;
  /** Whether no request waits for the unit. */
  readonly isBackground: (unit: Unit) => boolean;
  /** About how many characters of input a unit has, if they may be many. */
  readonly sizeOf: (unit: Unit) => number;
}

/**
 * Group commit. Units submitted in the same turn of the event loop share one transaction, and so one flush; each is
 * answered after the commit. A unit that is refused writes nothing and does not affect the others. When the database
 * rejects the group, its units run one by one, so that only the bad unit fails; a unit that conflicts with another
 * instance's transaction (the same row was written first) is retried.
 */
export class GroupCommit<Unit> {
  readonly #parts: GroupCommitDependencies<Unit>;
  #queue: Waiting<Unit>[] = [];
  #isRunning = false;
  /** Whether the last group was a large unit. */
  #wasLarge = false;

  constructor(parts: GroupCommitDependencies<Unit>) {
    this.#parts = parts;
  }

  /** The number of units in the queue. */
  get waiting(): number {
    return this.#queue.length;
  }

  /** Resolves with the result of a unit when it is committed. */
  submit(unit: Unit): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ unit, resolve, reject });
      if (this.#isRunning) return;
      this.#isRunning = true;
      // Alone, a unit of a request does not wait, and a background unit waits for one turn.
      this.#gather(this.#parts.isBackground(unit) ? 0 : 1, backgroundTurns);
    });
  }

  /** Starts a group in the check phase: by then, everything that this turn of the event loop brought is queued. */
  #gather(seen: number, turns: number): void {
    setImmediate(() => {
      const { length } = this.#queue;
      const left = this.#isAwaited() ? Math.min(turns, moreTurns) : turns;
      if (left > 0 && length > seen && length < maxGroup) this.#gather(length, left - 1);
      else this.#run().catch(rethrow);
    });
  }

  async #run(): Promise<void> {
    do await this.#commit(this.#takeGroup());
    while (this.#isAwaited());
    if (this.#queue.length === 0) this.#isRunning = false;
    else this.#gather(0, backgroundTurns);
  }

  /** Whether a request waits for a unit in the queue. */
  #isAwaited(): boolean {
    return this.#queue.some(({ unit }) => !this.#parts.isBackground(unit));
  }

  /** Takes the next units from the queue: a large one alone, in turns with all others. */
  #takeGroup(): Waiting<Unit>[] {
    const { sizeOf } = this.#parts;
    const isLarge = ({ unit }: Waiting<Unit>) => sizeOf(unit) > largeFrom;
    const large = this.#queue.find(isLarge);
    if (large === undefined) {
      this.#wasLarge = false;
      return this.#queue.splice(0, maxGroup);
    }
    const others = this.#queue.filter((waiting) => !isLarge(waiting));
    this.#wasLarge = others.length === 0 || !this.#wasLarge;
    const group = this.#wasLarge ? [large] : others.slice(0, maxGroup);
    const taken = new Set(group);
    this.#queue = this.#queue.filter((waiting) => !taken.has(waiting));
    return group;
  }

  async #commit(group: readonly Waiting<Unit>[], attempt = 1): Promise<void> {
    const { database, write } = this.#parts;
    let committed: Committed;
    try {
      committed = await write(group.map(({ unit }) => unit));
    } catch (error) {
      // The commit may or may not have happened, so nothing is retried.
      if (database.isUnavailable(error)) {
        for (const { reject } of group) reject(unavailable(error));
      } else if (group.length === 1) {
        // The next attempt reads what the other instance wrote.
        if (attempt < maxAttempts && database.isConflict(error)) await this.#commit(group, attempt + 1);
        else group[0]!.reject(error);
      } else {
        for (const waiting of group) await this.#commit([waiting]);
      }
      return;
    }
    try {
      committed.tell();
    } catch (error) {
      rethrow(error);
    }
    for (const [index, outcome] of committed.outcomes.entries()) {
      if ('error' in outcome) group[index]!.reject(outcome.error);
      else group[index]!.resolve(outcome.result);
    }
  }
}
