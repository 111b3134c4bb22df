import { nextTurn } from '../../kit/awaitable.ts';
import type { Clock } from '../../kit/clock.ts';
import { currentRequest } from '../../kit/current-request.ts';
import type { NewId } from '../../kit/id.ts';
import type { Database } from '../../kit/sql/dialect.ts';
import { dueAt } from '../rules/due.ts';
import { claimableStatus } from '../rules/packet-life.ts';
import type { Viewer } from '../rules/sight.ts';
import { waitsSince } from '../rules/times.ts';
import type { AnswerLinkNeeds } from './answer-links.ts';
import type { ClaimNeeds } from './claim-queue.ts';
import type { CounterNeeds } from './counters.ts';
import { type DeliveryNeeds, deliveries } from './deliveries.ts';
import type { DocumentNeeds } from './documents.ts';
import type { DueWalks } from './due-walk.ts';
import { Beginnings } from './engine/beginnings.ts';
import { Group, type TenantUnit, type Writes } from './engine/group.ts';
import { type Committed, GroupCommit, type Outcome } from './engine/groups.ts';
import { inSession } from './engine/in-session.ts';
import type { Session } from './engine/session.ts';
import { contentOf, eraseContent } from './erasure.ts';
import { type ErasureNeeds, erasedVersions, erasures } from './erasures.ts';
import type { CommittedEvents } from './event-rows.ts';
import type { ExecutionNeeds } from './executions.ts';
import type { IdempotencyNeeds } from './idempotency.ts';
import type { KeyNeeds } from './keys.ts';
import type { Noun } from './noun.ts';
import { nouns } from './nouns.ts';
import type { OpenPacketNeeds } from './open-packets.ts';
import { type PacketNeeds, packets } from './packets.ts';
import type { PersonNeeds } from './people.ts';
import type { QuestionNeeds } from './questions.ts';
import { type ScheduleNeeds, schedules } from './schedules.ts';
import type { SessionNeeds } from './sessions.ts';
import type { Tables } from './tables.ts';
import type { TenantNeeds } from './tenants.ts';
import { committedEvents } from './trail.ts';
import { Transaction } from './transaction.ts';
import { type WebhookNeeds, webhooks } from './webhooks.ts';

/** The writes of all nouns in lock order, and the members of a unit that each finds rows by. */
const written = Object.values<Noun>(nouns).flatMap(({ writes }) =>
  writes === undefined
    ? []
    : [{ writes: writes as Writes<Unit<unknown>, unknown>, needs: Object.keys(writes.needs) as (keyof Unit<unknown>)[] }],
);

/**
 * A unit of work: the rows it needs locked, and the work on them. Concurrent units share a database transaction; `work` is
 * synchronous, uses only the transaction it is given, and may run more than once.
 */
export interface Unit<T>
  extends AnswerLinkNeeds,
    ClaimNeeds,
    DocumentNeeds,
    CounterNeeds,
    DeliveryNeeds,
    ErasureNeeds,
    ExecutionNeeds,
    IdempotencyNeeds,
    KeyNeeds,
    OpenPacketNeeds,
    PacketNeeds,
    QuestionNeeds,
    PersonNeeds,
    ScheduleNeeds,
    SessionNeeds,
    TenantNeeds,
    WebhookNeeds {
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

/** Called after the commit of a group, for each tenant whose trail it appended to. A failure is reported, and fails no unit. */
type CommitListener = (appended: CommittedEvents) => void;

/** Called when something that runs after a commit failed, with the ids of the requests whose writes were committed. */
type FailureListener = (error: unknown, requestIds: readonly string[]) => void;

interface UnitsDependencies {
  readonly newId: NewId;
  readonly newSalt: () => string;
  readonly clock: Clock;
  readonly walks: DueWalks;
}

export type Units = ReturnType<typeof createUnits>;

/** Runs units of work in groups. */
export function createUnits(database: Database<Tables>, { newId, newSalt, clock, walks }: UnitsDependencies) {
  const beginnings = new Beginnings(clock);
  const listeners: CommitListener[] = [];
  const wakes: (() => void)[] = [];
  const failureListeners: FailureListener[] = [];

  /** Writes a group: finds the rows that its units name, runs the units, and writes what they staged, in one transaction. */
  async function write(units: readonly AnyUnit[]): Promise<Committed> {
    const group = new Group<Unit<unknown>>(units, { newId, newSalt, beginnings });
    const work = async (session: Session) => {
      // Concurrent: on PostgreSQL the first query of each noun is sent in this order, in one round trip.
      const finding = written.flatMap(({ writes, needs }) => (isNamed(units, needs) ? (writes.find?.(session, group) ?? []) : []));
      await Promise.all([session.begun, ...finding]);
      const outcomes = await runUnits(group, database.charactersPerTurn);
      const gone = group.each(packets.writes, ({ removed, erased }, tenant) =>
        [...removed, ...erased].map(({ packet, seq }) => ({ tenant, packet_id: packet.id, seq })),
      );
      if (gone.length > 0) await eraseIn(session, group, gone);
      for (const { writes } of written) {
        const flushed = group.has(writes) ? writes.flush?.(session, group) : undefined;
        // Only what waits is awaited: each await takes a turn of the queue of microtasks.
        if (flushed !== undefined) await flushed;
      }
      if (gone.length > 0) session.add('versions', ['name'], 'value', erasedVersions);
      return outcomes;
    };
    const outcomes = await inSession(database, work, { pipelined: true });
    return { outcomes, tell: () => afterCommit(group, outcomes) };
  }

  async function eraseIn(session: Session, group: UnitGroup, gone: Parameters<typeof contentOf>[1]): Promise<void> {
    // Only receipts need it.
    if (group.has(erasures.writes))
      for (const [key, content] of await contentOf(session, gone, clock())) group.erasedContent.set(key, content);
    const keys = gone.map(({ tenant, packet_id }) => ({ tenant, packet_id }));
    await eraseContent(session, group, written, keys);
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
    attempt(() => noteDue(group, walks));
    attempt(() => {
      if (isDue(group)) for (const wake of wakes) attempt(wake);
    });
    if (listeners.length === 0) return;
    attempt(() => {
      for (const appended of committedEvents(group)) for (const listener of listeners) attempt(() => listener(appended));
    });
  }

  const groups = new GroupCommit<AnyUnit>({
    ...{ database, write },
    isBackground: ({ request }) => request === undefined,
    sizeOf: ({ unit: { size = 0 } }) => size,
  });
  return {
    commit: <T>({ tenant_number: tenant, sight }: Viewer, unit: Unit<T>): Promise<T> => {
      return groups.submit({ tenant, sight, unit: unit as Unit<unknown>, request: currentRequest() }) as Promise<T>;
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
    /** The number of units that wait. */
    waiting: () => groups.waiting,
  };
}

/** Whether one of the units names one of these needs. */
const isNamed = (units: readonly AnyUnit[], needs: readonly (keyof Unit<unknown>)[]): boolean =>
  units.some(({ unit }) => needs.some((need) => unit[need] !== undefined));

/** Whether the group leaves deliveries to send, or changed webhooks whose deliveries may now be sent or cancelled. */
function isDue(group: UnitGroup): boolean {
  const isSent = group.each(deliveries.writes, ({ inserted, changed }) => [
    inserted.length > 0 || [...changed.values()].some(({ status }) => status === 'pending'),
  ]);
  return [...isSent, ...group.each(webhooks.writes, ({ changed }) => [changed.size > 0])].includes(true);
}

/** Notes when the packets and schedules that were written are due. */
function noteDue(group: UnitGroup, walks: DueWalks): void {
  group.each(packets.writes, ({ changed }) => {
    for (const { after } of changed.values()) {
      const at = dueAt(after.packet);
      if (at !== null) walks.due.written(at);
      if (after.packet.status === claimableStatus) {
        walks.created.written(after.packet.created_at);
        walks.available.written(waitsSince(after.packet));
      }
    }
    return [];
  });
  group.each(schedules.writes, ({ written }) => {
    for (const stored of written.values()) if (stored?.due_at != null) walks.schedules.written(stored.due_at);
    return [];
  });
}

/** Runs the units in order; each sees the changes of the units before it. The changes of a unit that throws are undone. */
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
    const transaction = transactions.get(unit.tenant) ?? new Transaction(unit.tenant, group);
    transactions.set(unit.tenant, transaction);
    group.trace = unit.request?.trace;
    group.sight = unit.sight;
    try {
      outcomes.push({ result: unit.unit.work(transaction) });
      group.journal.keep();
    } catch (error) {
      group.journal.rollback();
      outcomes.push({ error });
    }
  }
  return outcomes;
}

/** About how many characters a unit reads and writes: its own input, and the content of the packets that it parses. */
function lengthOf({ tenant, unit: { size = 0, whole, packets: ids = [] } }: AnyUnit, group: UnitGroup): number {
  if (!whole) return size;
  const { found } = group.of(packets.writes, tenant);
  return ids.reduce((sum, id) => sum + (found.get(id)?.parts.content.length ?? 0), size);
}
