import type { Awaitable } from '../../kit/awaitable.ts';
import { conflict, invalid, invalidRequest, notFound, ServiceError } from '../../kit/errors.ts';
import { entityTagOf } from '../../kit/etag.ts';
import { readJson } from '../../kit/json.ts';
import type { Turns } from '../../kit/turns.ts';
import type { CreateRequest } from '../model/packet.ts';
import type { Schedule, ScheduleError, ScheduleRequest } from '../model/schedule.ts';
import { cronProblem, isTimeZone, nextTime } from '../rules/cron.ts';
import { newPacket } from '../rules/new-packet.ts';
import { acts, requireAgent, requireRight } from '../rules/rights.ts';
import { runOf, type ScheduledRun } from '../rules/schedule.ts';
import { isSeen } from '../rules/sight.ts';
import type { Page } from '../store/page-size.ts';
import type { FoundSchedule, StoredSchedule } from '../store/schedules.ts';
import type { Transaction } from '../store/transaction.ts';
import type { Caller, CallerOfOrigin } from './authentication.ts';
import { actingFor } from './change.ts';
import { type CreateAnswer, type CreateOptions, type CreationDependencies, createIn, createUnder, unknownParent } from './create.ts';
import { type Beside, createDocumentService, type DocumentNoun, isDocumentName, type Preconditions } from './documents.ts';

/** The most schedules of a tenant. */
export const maxSchedules = 100;

const scheduleNoun: DocumentNoun = { kind: 'schedule', what: 'schedule', many: 'schedules', field: 'name', most: maxSchedules };

/** The largest packet of a schedule, as bytes of its JSON: lists have them all. */
const maxPacketBytes = 64 * 1024;

/** How many of its times that have come a schedule does in one round: all that were missed. */
const mostAtOnce = 101;

/** Who acts when a time comes, as histories name it. */
const actor = 'system:scheduler';

/** What a schedule says, as its document has it. */
interface ScheduleDocument extends Required<ScheduleRequest> {
  /** The first key of the chain of rotations, or the person, in whose name it runs. */
  readonly key_origin: string;
}

/** Thrown in a unit of work when the schedule was changed, or another instance ran it, so that nothing is written. */
class Overtaken extends Error {}

interface ScheduleServiceDependencies extends CreationDependencies {
  readonly turns: Turns;
  readonly callerOfOrigin: CallerOfOrigin;
  /** Drops the cached contracts if they have changed. A request does so when it finds its key. */
  readonly refresh: () => Awaitable<unknown>;
}

/** The operations on schedules, and what they do when a time comes. */
export function createScheduleService(parts: ScheduleServiceDependencies) {
  const { store, clock, turns, callerOfOrigin, refresh } = parts;
  const documents = createDocumentService({ store, clock });

  async function found(caller: Caller, name: string): Promise<FoundSchedule> {
    const schedule = isDocumentName(name) ? await store.of(caller).schedules.find(name) : undefined;
    if (schedule === undefined) throw notFound('schedule');
    return schedule;
  }

  return {
    /** Writes a schedule, which runs in the caller's name. `isNew`: there was none of the name. @throws ServiceError 400, 403, 409, 412 */
    async put(caller: Caller, name: string, request: ScheduleRequest, preconditions: Preconditions = {}) {
      if (caller.kind === 'token')
        throw new ServiceError(
          'FORBIDDEN',
          'A schedule goes on after a token has expired: this needs an API key, or a person who signed in.',
        );
      requireSound(request, clock());
      const { cron, timezone, packet, active = true, missed = 'latest' } = request;
      requireAgent(caller, packet.metadata.source_agent.id);
      const document: ScheduleDocument = { cron, timezone, packet, active, missed, key_origin: caller.origin };
      let row: StoredSchedule;
      const beside: Beside = {
        schedulesOf: [name],
        judge({ schedules }) {
          const before = schedules.get(name)!;
          if (!isSeenBy(caller, before)) throw conflict('The name is taken.');
          requireAgent(caller, before.source_agent);
        },
        work({ schedules }, { stored: { version }, isChanged }, { now }) {
          row = schedules.get(name) ?? fresh(name);
          // A time that has come stays due, unless something else is written.
          if (!isChanged && row.disabled_reason === null) return;
          row = { ...row, version, key_origin: caller.origin, ...agentsOf(packet), disabled_reason: null };
          row = { ...row, due_at: active ? nextTime(document, now).toISOString() : null };
          schedules.save(row);
        },
      };
      const { stored, isNew } = await documents.put(caller, scheduleNoun, name, document, preconditions, beside);
      const { created_at, updated_at } = stored;
      return { schedule: shownSchedule({ ...row!, document: stored.document, created_at, updated_at }), isNew };
    },

    /** A schedule. @throws ServiceError 404 */
    get: async (caller: Caller, name: string): Promise<Schedule> => shownSchedule(await found(caller, name)),

    /** Removes a schedule; packets that it has made stay. @throws ServiceError 403, 404, 412 */
    async remove(caller: Caller, name: string, preconditions: Preconditions = {}): Promise<void> {
      await documents.remove(caller, scheduleNoun, name, preconditions, {
        schedulesOf: [name],
        judge({ schedules }) {
          const before = schedules.get(name)!;
          if (!isSeenBy(caller, before)) throw notFound('schedule');
          requireAgent(caller, before.source_agent);
        },
        work: ({ schedules }) => schedules.remove(name),
      });
    },

    /** A page of the schedules that the caller sees, by name. The read is cancelled by `signal`. */
    async list(caller: Caller, page: Page, signal: AbortSignal) {
      const { rows, total } = await store.of(caller, signal).schedules.page(page);
      return { schedules: rows.map(shownSchedule), total, ...page };
    },

    /** The next times of a schedule, also while it is switched off. @throws ServiceError 404 */
    async next(caller: Caller, name: string, count: number): Promise<string[]> {
      const recurrence = documentOf(await found(caller, name));
      const times: string[] = [];
      for (let time = clock(); times.length < count; times.push(time.toISOString())) time = nextTime(recurrence, time);
      return times;
    },

    /** Makes the packet of a schedule now, in the name of the caller. @throws ServiceError 404, and what a create refuses */
    async run(caller: Caller, name: string, options: CreateOptions = {}): Promise<CreateAnswer> {
      const { packet } = documentOf(await found(caller, name));
      const schedule = { name, at: clock().toISOString() };
      return create(parts, caller, packet, { ...options, schedule });
    },

    /** Does what a schedule does at each of its times that has come. */
    async runDue(tenant: number, name: string): Promise<void> {
      for (let times = 0; times < mostAtOnce; times += 1) {
        await turns.next(tenant);
        if (!(await runOne(tenant, name))) return;
      }
    },
  };

  /** Creates the packet of a schedule whose time has come. Returns whether a further time of the schedule may have come as well. */
  async function runOne(tenant: number, name: string): Promise<boolean> {
    const now = clock();
    const stored = await store.whole(tenant).schedules.find(name);
    if (stored === undefined || stored.due_at === null || new Date(stored.due_at) > now) return false;
    const document = documentOf(stored);
    await refresh();
    const caller = await callerOfOrigin(tenant, stored.key_origin);
    try {
      if (caller === undefined) await disable(tenant, stored);
      else {
        const run = runOf(document, new Date(stored.due_at), now);
        const { at } = run;
        const refusal = at === null ? undefined : await make(caller, stored, document.packet, { ...run, at });
        if (at === null || refusal !== undefined) await advance(tenant, stored, run, refusal);
      }
      return true;
    } catch (error) {
      if (error instanceof Overtaken) return false;
      throw error;
    }
  }

  /** Makes the packet of a time. Returns why it is refused; undefined: it is made. The schedule's next time moves with it, so that no other makes it again. */
  async function make(
    caller: Caller,
    stored: FoundSchedule,
    packet: CreateRequest,
    run: ScheduledRun & { readonly at: Date },
  ): Promise<ServiceError | undefined> {
    const { name } = stored;
    const at = run.at.toISOString();
    try {
      requireRight(caller, acts.runSchedule);
      await create(parts, caller, packet, { schedule: { name, at }, schedulesOf: [name] }, (transaction, packetId, now) => {
        const row = currentRow(transaction, stored);
        transaction.schedules.save({ ...row, due_at: run.next.toISOString(), last_at: at, last_packet_id: packetId, last_error: null });
        if (run.skips) recordSkip(transaction, stored, run, now);
      });
      return undefined;
    } catch (error) {
      // What the service itself can't do now, it tries again.
      if (error instanceof ServiceError && error.status < 500) return error;
      throw error;
    }
  }

  /** Moves the next time of a schedule on without a packet. */
  function advance(tenant: number, stored: FoundSchedule, run: ScheduledRun, refusal: ServiceError | undefined): Promise<void> {
    const now = clock();
    return store.whole(tenant).commit({
      schedulesOf: [stored.name],
      work(transaction) {
        const row = currentRow(transaction, stored);
        const last_error: ScheduleError | undefined = refusal && {
          at: run.at!.toISOString(),
          code: refusal.code,
          detail: refusal.message,
        };
        transaction.schedules.save({
          ...row,
          due_at: run.next.toISOString(),
          ...(last_error === undefined ? {} : { last_error: JSON.stringify(last_error) }),
        });
        if (run.skips) recordSkip(transaction, stored, run, now);
        if (last_error !== undefined)
          transaction.trail.audit(
            { event_type: 'failed', resource: 'schedule', actor, details: { name: stored.name, ...last_error } },
            { now, keyId: null },
          );
      },
    });
  }

  /** Switches a schedule off whose key or person is no longer valid. */
  function disable(tenant: number, stored: FoundSchedule): Promise<void> {
    const now = clock();
    const disabled_reason = 'The key or the person that wrote it is no longer valid.';
    return store.whole(tenant).commit({
      schedulesOf: [stored.name],
      work(transaction) {
        const row = currentRow(transaction, stored);
        transaction.schedules.save({ ...row, due_at: null, disabled_reason });
        const details = { name: stored.name, reason: disabled_reason };
        transaction.trail.audit({ event_type: 'disabled', resource: 'schedule', actor, details }, { now, keyId: null });
      },
    });
  }
}

export type ScheduleService = ReturnType<typeof createScheduleService>;

/** Creates the packet of a schedule as a request of the caller would. `beside` writes more in its unit of work. */
async function create(
  parts: CreationDependencies,
  caller: Caller,
  request: CreateRequest,
  options: CreateOptions,
  beside?: (transaction: Transaction, packetId: string, now: Date) => void,
): Promise<CreateAnswer> {
  requireAgent(caller, request.metadata.source_agent.id);
  const verdict = (await parts.contracts.judge(caller, [request])).get(request);
  return createUnder(parts, caller, options, [request], 1, (transaction, countCreate, now) => {
    const packet = createIn(parts, transaction, countCreate, { request, verdict }, options, actingFor(caller, now), unknownParent);
    beside?.(transaction, packet.id, now);
    return { status: 201, body: transaction.packets.text(packet.id), etag: entityTagOf(packet.revision), packetIds: [packet.id] };
  });
}

/** The locked row of a schedule that is as it was read. @throws Overtaken when it is not */
function currentRow({ schedules }: Transaction, { name, due_at, version, key_origin }: StoredSchedule): StoredSchedule {
  const row = schedules.get(name);
  if (row === undefined || row.due_at !== due_at || row.version !== version || row.key_origin !== key_origin) throw new Overtaken();
  return row;
}

function recordSkip({ trail }: Transaction, { name, due_at }: StoredSchedule, { at, next }: ScheduledRun, now: Date): void {
  const details = { name, from: due_at, until: (at ?? next).toISOString() };
  trail.audit({ event_type: 'skipped', resource: 'schedule', actor, details }, { now, keyId: null });
}

const isSeenBy = ({ sight }: Caller, { source_agent, target_agent }: StoredSchedule): boolean =>
  isSeen(sight, { source_agent, target_agent, claimant: null });

const fresh = (name: string): StoredSchedule => ({
  ...{ name, version: 0, key_origin: '', source_agent: '', target_agent: '', due_at: null },
  ...{ last_at: null, last_packet_id: null, last_error: null, disabled_reason: null },
});

const agentsOf = ({ metadata: { source_agent, target_agent } }: CreateRequest) => ({
  source_agent: source_agent.id.toWellFormed(),
  target_agent: target_agent.id.toWellFormed(),
});

const documentOf = ({ document }: Pick<FoundSchedule, 'document'>) => readJson(document) as unknown as ScheduleDocument;

/** A schedule as callers see it. */
function shownSchedule(stored: FoundSchedule): Schedule {
  const { key_origin: _, ...said } = documentOf(stored);
  const { name, version, due_at: next_at, last_at, last_packet_id, last_error, disabled_reason, created_at, updated_at } = stored;
  const error = last_error === null ? null : (readJson(last_error) as unknown as ScheduleError);
  return { name, version, ...said, next_at, last_at, last_packet_id, last_error: error, disabled_reason, created_at, updated_at };
}

/** Requires that a schedule can run. @throws ServiceError 400 */
function requireSound({ cron, timezone, packet }: ScheduleRequest, now: Date): void {
  const problem = cronProblem(cron);
  if (problem !== undefined) throw invalid('cron', problem);
  if (!isTimeZone(timezone)) throw invalid('timezone', 'timezone must be the IANA name of a time zone, such as Europe/Berlin.');
  const size = Buffer.byteLength(JSON.stringify(packet));
  if (size > maxPacketBytes) throw invalid('packet', `packet has ${size} bytes as JSON; at most ${maxPacketBytes} are allowed.`);
  try {
    newPacket(packet, { id: '', now, agentId: undefined });
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const field = error.field ? `packet.${error.field}` : 'packet';
    throw invalidRequest([{ field, detail: `${field}: ${error.message}` }]);
  }
}
