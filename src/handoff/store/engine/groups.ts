import { rethrow } from '../../../kit/awaitable.ts';
import { unavailable } from '../../../kit/errors.ts';
import type { Database } from '../../../kit/sql/dialect.ts';
import { inSession } from './in-session.ts';
import type { Session } from './session.ts';

/** The outcome of one unit of a group: its result, or the error it was refused with. */
export type Outcome<T> = { result: T } | { error: unknown };

/** The result of running a group: the outcome of each unit in order, and what to do after the commit. */
export interface GroupResult {
  readonly outcomes: Outcome<unknown>[];
  /** Called after the commit and before the units are answered; it must not fail. */
  committed?(): void;
}

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

interface Waiting<Unit> {
  unit: Unit;
  resolve(value: unknown): void;
  reject: (error: unknown) => void;
}

interface GroupOptions<Unit> {
  /** Whether no request waits for the unit. */
  isBackground: (unit: Unit) => boolean;
  /** About how many characters of input a unit has, if they may be many. */
  sizeOf: (unit: Unit) => number;
}

type RunGroup<Unit> = (session: Session, units: readonly Unit[]) => Promise<GroupResult>;

interface WriterDependencies<Tables, Unit> extends GroupOptions<Unit> {
  readonly database: Database<Tables>;
  readonly runGroup: RunGroup<Unit>;
}

interface Groups<Unit> {
  /** Resolves with the result of a unit when it is committed. */
  submit: (unit: Unit) => Promise<unknown>;
  waiting: () => number;
}

/**
 * Group commit. Units submitted in the same turn of the event loop share one transaction, and so one flush; each is
 * answered after the commit. A unit that is refused writes nothing and does not affect the others. When the database
 * rejects the group, its units run one by one, so that only the bad unit fails; a unit that conflicts with another
 * instance's transaction (the same row was written first) is retried.
 */
export function createGroups<Tables, Unit>(
  database: Database<Tables>,
  runGroup: RunGroup<Unit>,
  { isBackground = () => false, sizeOf = () => 0 }: Partial<GroupOptions<Unit>> = {},
): Groups<Unit> {
  const writer = new GroupWriter<Tables, Unit>({ database, runGroup, isBackground, sizeOf });
  return { submit: (unit) => writer.submit(unit), waiting: () => writer.waiting };
}

/** Units of all tenants in groups that are written one after the other. */
class GroupWriter<Tables, Unit> {
  readonly #parts: WriterDependencies<Tables, Unit>;
  #queue: Waiting<Unit>[] = [];
  #isRunning = false;
  /** Whether the last group was a large unit. */
  #wasLarge = false;

  constructor(parts: WriterDependencies<Tables, Unit>) {
    this.#parts = parts;
  }

  /** The number of units in the queue. */
  get waiting(): number {
    return this.#queue.length;
  }

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
    const { database, runGroup } = this.#parts;
    let done: GroupResult;
    try {
      const units = group.map(({ unit }) => unit);
      done = await inSession(database, (session) => runGroup(session, units), { pipelined: true });
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
    done.committed?.();
    for (const [index, outcome] of done.outcomes.entries()) {
      if ('error' in outcome) group[index]!.reject(outcome.error);
      else group[index]!.resolve(outcome.result);
    }
  }
}
