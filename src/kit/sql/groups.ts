import type { Awaitable } from '../awaitable.ts';
import { unavailable } from '../errors.ts';
import type { Database, Session } from './dialect.ts';

/** What became of one unit of a group: its result, or why it was refused. */
export type Outcome<T> = { result: T } | { error: unknown };

/** What a group of units did: what became of each, and what is to be told once it is committed. */
export interface CarriedOut {
  readonly outcomes: Outcome<unknown>[];
  /** Called after the commit, before anybody is answered; it must not fail. */
  committed?(): Awaitable<void>;
}

/** The most units in one transaction. It bounds the longest wait behind a group. */
const maxGroup = 256;

/**
 * How many turns of the event loop more a group gathers, as long as each brings another unit: what a commit costs is
 * shared by all that are in it. A unit that comes alone is not kept waiting.
 */
const moreTurns = 2;

/** How often a unit is carried out alone that another instance overtakes. */
const maxAttempts = 3;

interface Waiting<Unit> {
  unit: Unit;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/**
 * Group commit. Units that wait in the same turn of the event loop share one transaction, and so one flush; each is
 * answered after the commit. A unit that is refused writes nothing and leaves the others alone. When the database
 * refuses the group, its units are carried out one by one, so that one bad unit fails alone; one that another instance
 * has overtaken (it wrote the same row first) is carried out again.
 */
export function createGroups<Tables, Unit>(
  database: Database<Tables>,
  carryOut: (session: Session, units: readonly Unit[]) => Promise<CarriedOut>,
): { submit(unit: Unit): Promise<unknown>; waiting(): number } {
  let queue: Waiting<Unit>[] = [];
  let running = false;

  async function commit(group: readonly Waiting<Unit>[], attempt = 1): Promise<void> {
    let done: CarriedOut;
    try {
      done = await database.session((session) =>
        carryOut(
          session,
          group.map(({ unit }) => unit),
        ),
      );
    } catch (error) {
      // Out of reach: the commit may or may not have happened, so nothing is tried twice.
      if (database.isUnavailable(error)) {
        for (const { reject } of group) reject(unavailable(error));
      } else if (group.length === 1) {
        // What another instance has written meanwhile is found at the next attempt.
        if (attempt < maxAttempts && database.isOvertaken(error)) await commit(group, attempt + 1);
        else group[0]!.reject(error);
      } else {
        for (const waiting of group) await commit([waiting]);
      }
      return;
    }
    const telling = done.committed?.();
    if (telling instanceof Promise) await telling;
    for (const [index, outcome] of done.outcomes.entries()) {
      if ('error' in outcome) group[index]!.reject(outcome.error);
      else group[index]!.resolve(outcome.result);
    }
  }

  async function run(): Promise<void> {
    while (queue.length > 0) {
      const group = queue.slice(0, maxGroup);
      queue = queue.slice(maxGroup);
      await commit(group);
    }
    running = false;
  }

  /** Begins a group in the check phase: everything that a turn of the event loop brings is in the queue by then. */
  function gather(seen: number, turns: number): void {
    setImmediate(() => {
      if (turns > 0 && queue.length > seen && queue.length < maxGroup) gather(queue.length, turns - 1);
      else void run();
    });
  }

  return {
    submit(unit) {
      return new Promise((resolve, reject) => {
        queue.push({ unit, resolve, reject });
        if (running) return;
        running = true;
        gather(1, moreTurns);
      });
    },
    waiting: () => queue.length,
  };
}
