import { nextTurn } from '../../kit/awaitable.ts';
import type { NewId } from '../../kit/id.ts';
import { currentRequestId } from '../../kit/request-id.ts';
import type { Database, Session } from '../../kit/sql/dialect.ts';
import { createGroups, type GroupResult, type Outcome } from '../../kit/sql/groups.ts';
import type { Tables } from './tables.ts';
import { access } from './units/access.ts';
import { answers } from './units/answers.ts';
import { counters } from './units/counters.ts';
import { deliveries } from './units/deliveries.ts';
import { type CommittedEvents, committedEvents, events } from './units/events.ts';
import { next } from './units/next.ts';
import { open } from './units/open.ts';
import { packets, removedPackets } from './units/packets.ts';
import { Group, type Kind, type TenantUnit, type Unit } from './units/transaction.ts';
import { webhooks } from './units/webhooks.ts';

/**
 * Everything that units of work read and write, in lock order. Events come last, because a tenant's position counter stays
 * locked from there to the commit.
 */
const kinds: readonly Kind[] = [access, webhooks, packets, next, deliveries, answers, counters, open, events];

/** Called after the commit of a group, for each tenant whose trail it appended to. A failure is reported, and fails no unit. */
export type CommitListener = (appended: CommittedEvents) => void;

/** Called when something that runs after a commit failed, with the ids of the requests whose writes were committed. */
export type FailureListener = (error: unknown, requestIds: readonly string[]) => void;

/** Runs units of work in groups. */
export function createUnits(database: Database<Tables>, newId: NewId) {
  const listeners: CommitListener[] = [];
  const wakes: (() => void)[] = [];
  const failureListeners: FailureListener[] = [];

  async function runGroup(session: Session, units: readonly TenantUnit[]): Promise<GroupResult> {
    const group = new Group(units, newId);
    // Concurrent: on PostgreSQL the first query of each kind is sent in this order, in one round trip.
    await Promise.all([session.begun, ...kinds.map((kind) => kind.find?.(session, group))]);
    const outcomes = await runUnits(group, database.charactersPerTurn);
    const removed = removedPackets(group);
    if (removed.length > 0) for (const kind of kinds) await kind.erase?.(session, group, removed);
    for (const kind of kinds) await kind.flush(session, group);
    return { outcomes, committed: () => afterCommit(group) };
  }

  function afterCommit(group: Group): void {
    /** The writes are stored, so that a failure from here on must not become the answer of a request. */
    const attempt = (work: () => void): void => {
      try {
        work();
      } catch (error) {
        const requestIds = group.units.flatMap(({ requestId }) => requestId ?? []);
        for (const report of failureListeners) report(error, requestIds);
      }
    };
    attempt(() => {
      if (isDue(group)) for (const wake of wakes) attempt(wake);
    });
    if (listeners.length === 0) return;
    attempt(() => {
      for (const appended of committedEvents(group)) for (const listener of listeners) attempt(() => listener(appended));
    });
  }

  const groups = createGroups<Tables, TenantUnit>(database, runGroup);
  return {
    async commit<T>(tenant: number, unit: Unit<T>): Promise<T> {
      return (await groups.submit({ tenant, unit: unit as Unit<unknown>, requestId: currentRequestId() })) as T;
    },
    /** Calls the listener after every commit from now on. */
    onCommit: (listener: CommitListener) => void listeners.push(listener),
    /** Calls the listener for every failure of what runs after a commit. */
    onFailure: (listener: FailureListener) => void failureListeners.push(listener),
    /** Calls `wake` after every commit that leaves deliveries to be sent. */
    onDeliveries: (wake: () => void) => void wakes.push(wake),
    waiting: groups.waiting,
  };
}

/** Whether the group leaves deliveries to send, or changed webhooks whose deliveries may now be sent or cancelled. */
function isDue(group: Group): boolean {
  const found = group.each(({ deliveries: { fresh, changed }, webhooks: own }) => [
    fresh.length > 0 || own.changed.size > 0 || [...changed.values()].some(({ status }) => status === 'pending'),
  ]);
  return found.includes(true);
}

/** Runs the units in order; each sees the changes of the units before it. */
async function runUnits(group: Group, charactersPerTurn: number): Promise<Outcome<unknown>[]> {
  const outcomes: Outcome<unknown>[] = [];
  let length = 0;
  for (const unit of group.units) {
    if (length > charactersPerTurn) {
      await nextTurn();
      length = 0;
    }
    length += lengthOf(unit, group);
    outcomes.push(runUnit(unit, group));
  }
  return outcomes;
}

/** About how many characters a unit reads and writes: its own input, and the content of the packets that it parses. */
function lengthOf({ tenant, unit: { size = 0, whole, packets: ids = [] } }: TenantUnit, group: Group): number {
  if (!whole) return size;
  const { found } = group.of(tenant).packets;
  return ids.reduce((sum, id) => sum + (found.get(id)?.parts.content.length ?? 0), size);
}

/** Runs one unit. The changes of a unit that throws are undone before the next one runs. */
function runUnit({ tenant, unit }: TenantUnit, group: Group): Outcome<unknown> {
  try {
    const result = unit.work(group.of(tenant));
    group.journal.keep();
    return { result };
  } catch (error) {
    group.journal.takeBack();
    return { error };
  }
}
