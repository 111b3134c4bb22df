import { nextTurn } from '../../kit/awaitable.ts';
import { currentRequest } from '../../kit/current-request.ts';
import type { NewId } from '../../kit/id.ts';
import type { Database } from '../../kit/sql/dialect.ts';
import { dueAt } from '../rules/packet.ts';
import { claimableStatus } from '../rules/packet-life.ts';
import { deliveries } from './deliveries.ts';
import type { DueTenants } from './due.ts';
import { everyTenant, Group, type Kind, type Staging, type TenantUnit } from './engine/group.ts';
import { createGroups, type GroupResult, type Outcome } from './engine/groups.ts';
import type { Session } from './engine/session.ts';
import type { CommittedEvents } from './event-rows.ts';
import type { Noun } from './noun.ts';
import { type Needs, nouns, type Staged } from './nouns.ts';
import { packets } from './packets.ts';
import type { Tables } from './tables.ts';
import { tenants } from './tenants.ts';
import { committedEvents, type TrailBuffer, trail } from './trail.ts';
import { webhooks } from './webhooks.ts';

type AnyKind = Kind<Unit<unknown>, unknown>;

/** What units of work read and write, by the names of their members in a transaction, in lock order. */
const staged = Object.entries(nouns).flatMap(([name, { kind }]: [string, Noun]) =>
  kind === undefined ? [] : [{ name, kind: kind as AnyKind, needs: Object.keys(kind.needs) as (keyof Needs)[] }],
);

/**
 * A unit of work: the rows it needs locked, and the work on them. Concurrent units share a database transaction; `work` is
 * synchronous, uses only the transaction it is given, and may run more than once.
 */
export interface Unit<T> extends Needs {
  /** Whether it parses the packets with their content. */
  readonly whole?: boolean;
  /** About how many characters of input it has, where they may be many. */
  readonly size?: number;
  work(transaction: Transaction): T;
  /** Called after the commit, unless `work` refused. A failure is reported, and does not become the answer. */
  committed?(): void;
}

type AnyUnit = TenantUnit<Unit<unknown>>;
type UnitGroup = Group<Unit<unknown>>;

/** What a unit of work reads and changes of its tenant, and the keys and tenants that it names. */
export type Transaction = Staged & Pick<GroupTransaction, 'trailOf'>;

/** Has a getter for each noun, so that a group stages only what its units use. */
class GroupTransaction {
  readonly #tenant: number;
  readonly #group: Group<unknown>;

  static {
    for (const { name, kind } of staged) {
      Object.defineProperty(GroupTransaction.prototype, name, {
        get(this: GroupTransaction) {
          return this.#group.of({ kind } as Staging<unknown>, kind.ofEveryTenant ? everyTenant : this.#tenant);
        },
      });
    }
  }

  constructor(tenant: number, group: Group<unknown>) {
    this.#tenant = tenant;
    this.#group = group;
  }

  /**
   * The trail of another tenant: what an admin does to a tenant is recorded in that tenant's trail. It is a
   * method, since with a function stored on each transaction, minor collections copied 5 MB instead of 0.5 MB under load.
   */
  trailOf(tenant: number): TrailBuffer {
    return this.#group.of(trail, tenant);
  }
}

const transactionOf = (tenant: number, group: Group<unknown>): Transaction => new GroupTransaction(tenant, group) as unknown as Transaction;

/** Called after the commit of a group, for each tenant whose trail it appended to. A failure is reported, and fails no unit. */
type CommitListener = (appended: CommittedEvents) => void;

/** Called when something that runs after a commit failed, with the ids of the requests whose writes were committed. */
type FailureListener = (error: unknown, requestIds: readonly string[]) => void;

/** Runs units of work in groups. */
export function createUnits(database: Database<Tables>, newId: NewId, due: DueTenants) {
  const listeners: CommitListener[] = [];
  const wakes: (() => void)[] = [];
  const failureListeners: FailureListener[] = [];

  async function runGroup(session: Session, units: readonly AnyUnit[]): Promise<GroupResult> {
    const group = new Group<Unit<unknown>>(units, newId);
    // Concurrent: on PostgreSQL the first query of each kind is sent in this order, in one round trip.
    const finding = staged.flatMap(({ kind, needs }) => (isNamed(units, needs) ? (kind.find?.(session, group) ?? []) : []));
    await Promise.all([session.begun, ...finding]);
    const outcomes = await runUnits(group, database.charactersPerTurn);
    const erased = group.each(packets, ({ removed }, tenant) => removed.map(({ packet }) => ({ tenant, packet_id: packet.id })));
    if (erased.length > 0) for (const { kind } of staged) await kind.erase?.(session, group, erased);
    for (const { kind } of staged) {
      const flushed = group.has(kind) ? kind.flush?.(session, group) : undefined;
      // Only what waits is awaited: each await takes a turn of the queue of microtasks.
      if (flushed !== undefined) await flushed;
    }
    return { outcomes, committed: () => afterCommit(group, outcomes) };
  }

  function afterCommit(group: UnitGroup, outcomes: readonly Outcome<unknown>[]): void {
    /** The writes are stored, so that a failure from here on must not become the answer of a request. */
    const attempt = (work: () => void): void => {
      try {
        work();
      } catch (error) {
        const requestIds = group.units.flatMap(({ request }) => request?.id ?? []);
        for (const report of failureListeners) report(error, requestIds);
      }
    };
    for (const [index, { unit }] of group.units.entries()) {
      if (unit.committed !== undefined && 'result' in outcomes[index]!) attempt(() => unit.committed!());
    }
    if (due.isUsed) attempt(() => addDue(group, due));
    attempt(() => {
      if (isDue(group)) for (const wake of wakes) attempt(wake);
    });
    if (listeners.length === 0) return;
    attempt(() => {
      for (const appended of committedEvents(group)) for (const listener of listeners) attempt(() => listener(appended));
    });
  }

  const groups = createGroups<Tables, AnyUnit>(database, runGroup, {
    isBackground: ({ request }) => request === undefined,
    tenantOf: ({ tenant }) => tenant,
  });
  return {
    commit: <T>(tenant: number, unit: Unit<T>): Promise<T> => {
      return groups.submit({ tenant, unit: unit as Unit<unknown>, request: currentRequest() }) as Promise<T>;
    },
    /** Calls the listener after every commit from now on. */
    onCommit: (listener: CommitListener) => {
      listeners.push(listener);
    },
    /** Calls the listener for every failure of what runs after a commit. */
    onFailure: (listener: FailureListener) => {
      failureListeners.push(listener);
    },
    /** Calls `wake` after every commit that leaves deliveries to be sent. */
    onDeliveries: (wake: () => void) => {
      wakes.push(wake);
    },
    waiting: groups.waiting,
  };
}

/** Whether one of the units names one of these needs. */
const isNamed = (units: readonly AnyUnit[], needs: readonly (keyof Needs)[]): boolean =>
  units.some(({ unit }) => needs.some((need) => unit[need] !== undefined));

/** Whether the group leaves deliveries to send, or changed webhooks whose deliveries may now be sent or cancelled. */
function isDue(group: UnitGroup): boolean {
  const isSent = group.each(deliveries, ({ inserted, changed }) => [
    inserted.length > 0 || [...changed.values()].some(({ status }) => status === 'pending'),
  ]);
  return [...isSent, ...group.each(webhooks, ({ changed }) => [changed.size > 0])].includes(true);
}

/** Adds the tenants that have work for jobs after the commit. */
function addDue(group: UnitGroup, due: DueTenants): void {
  group.each(packets, ({ inserted, changed }, tenant) => {
    for (const { packet } of [...inserted.values(), ...[...changed.values()].map(({ after }) => after)]) {
      const at = dueAt(packet);
      if (at !== null) due.add('sweep', tenant, at);
      if (due.unclaimedTtlSeconds > 0 && packet.status === claimableStatus)
        due.add('expire', tenant, new Date(Date.parse(packet.created_at) + due.unclaimedTtlSeconds * 1000));
      due.add('index', tenant, packet.updated_at);
    }
    return [];
  });
  group.each(deliveries, ({ inserted, changed }, tenant) => {
    for (const { due_at } of [...inserted, ...changed.values()]) if (due_at !== null) due.add('deliver', tenant, due_at);
    return [];
  });
  // Those of a deleted tenant are cancelled.
  group.each(tenants, ({ changed }) => {
    for (const { number, tenant } of changed.values()) due.add('deliver', number, tenant.updated_at);
    return [];
  });
  group.each(webhooks, ({ changed }, tenant) => {
    for (const { updated_at } of changed.values()) due.add('deliver', tenant, updated_at);
    return [];
  });
}

/** Runs the units in order; each sees the changes of the units before it. */
async function runUnits(group: UnitGroup, charactersPerTurn: number): Promise<Outcome<unknown>[]> {
  const outcomes: Outcome<unknown>[] = [];
  const transactions = new Map<number, Transaction>();
  let length = 0;
  for (const unit of group.units) {
    if (length > charactersPerTurn) {
      await nextTurn();
      length = 0;
    }
    length += lengthOf(unit, group);
    const transaction = transactions.get(unit.tenant) ?? transactionOf(unit.tenant, group);
    transactions.set(unit.tenant, transaction);
    group.trace = unit.request?.trace;
    outcomes.push(runUnit(unit.unit, transaction, group));
  }
  return outcomes;
}

/** About how many characters a unit reads and writes: its own input, and the content of the packets that it parses. */
function lengthOf({ tenant, unit: { size = 0, whole, packets: ids = [] } }: AnyUnit, group: UnitGroup): number {
  if (!whole) return size;
  const { found } = group.of(packets, tenant);
  return ids.reduce((sum, id) => sum + (found.get(id)?.parts.content.length ?? 0), size);
}

/** Runs one unit. The changes of a unit that throws are undone before the next one runs. */
function runUnit(unit: Unit<unknown>, transaction: Transaction, group: UnitGroup): Outcome<unknown> {
  try {
    const result = unit.work(transaction);
    group.journal.keep();
    return { result };
  } catch (error) {
    group.journal.rollback();
    return { error };
  }
}
