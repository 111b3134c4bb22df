import { eachInTurn } from '../../kit/awaitable.ts';
import { dayMs } from '../../kit/dates.ts';
import { conflict, invalid, notFound, ServiceError } from '../../kit/errors.ts';
import { readJson } from '../../kit/json.ts';
import { isId } from '../../kit/uuid.ts';
import type { Erasure, ErasureRequest } from '../model/erasure.ts';
import type { ScheduleRequest } from '../model/schedule.ts';
import { noProgress, receiptDigest } from '../rules/receipt.ts';
import { subjectDigest } from '../rules/subjects.ts';
import type { StoredErasure } from '../store/erasures.ts';
import type { Transaction } from '../store/transaction.ts';
import { actorOf, type Caller, provenanceOf } from './authentication.ts';
import { changeIn } from './change.ts';
import { readCursor, writeCursor } from './cursor.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { requireOneWay } from './filters.ts';
import type { PacketViews } from './packet-views.ts';
import { maxSchedules } from './schedules.ts';
import { auditRecord } from './trail.ts';

interface ErasureDependencies extends ServiceDependencies {
  /** What this instance holds of packets in memory. */
  views: Pick<PacketViews, 'forget'>;
  /** How many days packets are kept after they ended, unless their tenant says otherwise; 0: for ever. */
  retentionDays: number;
}

/** The most packets that one step erases, in one transaction. */
const perStep = 20;

/** Who erases by retention. */
const retentionActor = 'system:retention';

/** The operations on erasures, and the steps in which they are carried out. */
export function createErasureService({ store, clock, newId, views, retentionDays }: ErasureDependencies) {
  let knownVersion: number | undefined;

  /** Requires that no schedule makes packets about a person, also none that the caller does not see. @throws ServiceError 409 */
  async function requireUnscheduled(tenant: number, subject: string): Promise<void> {
    const { rows } = await store.whole(tenant).schedules.page({ limit: maxSchedules, offset: 0 });
    const names = rows.filter(({ document }) => subjectsOf(document).includes(subject)).map(({ name }) => name);
    if (names.length > 0)
      throw conflict(
        `Schedules make packets about this person: ${names.join(', ')}. Remove them, or the person from their packet.metadata.subjects, first.`,
      );
  }

  /** Erases packets in one transaction, or, if that fails, in one each, so that a packet that fails keeps no other. */
  async function eraseTogether<T>(ids: readonly string[], erase: (ids: readonly string[]) => Promise<T>): Promise<T> {
    try {
      return await erase(ids);
    } catch (error) {
      // Without the database each of them would fail too.
      if (ids.length < 2 || store.isUnavailable(error instanceof ServiceError ? error.cause : error)) throw error;
      return (await eachInTurn(ids, (id) => erase([id]))).at(-1)!;
    }
  }

  return {
    async create(caller: Caller, request: ErasureRequest): Promise<Erasure> {
      const { subject, packet_ids, reason } = request;
      if ((subject === undefined) === (packet_ids === undefined))
        throw invalid(subject === undefined ? 'subject' : 'packet_ids', 'Send either subject or packet_ids.');
      if (subject !== undefined) await requireUnscheduled(caller.tenant_number, subject);
      const { erasures } = store.of(caller);
      const ids = [...new Set((packet_ids ?? []).map((id) => id.toLowerCase()))];
      const remaining = await erasures.known(ids.filter(isId));
      const subject_digest = subject === undefined ? null : subjectDigest(subject);
      const at = provenanceOf(caller, clock());
      const erasure: StoredErasure = {
        ...{ id: newId(at.now), status: 'queued', reason, actor: actorOf(caller), key_id: caller.key_id, subject_digest, remaining },
        packets: subject_digest === null ? remaining.length : await erasures.count(subject_digest),
        not_found: ids.filter((id) => !remaining.includes(id)),
        ...{ progress: noProgress, created_at: at.now.toISOString(), done_at: null },
      };
      await store.of(caller).commit({
        work({ erasures: own, trail }) {
          own.insert(erasure);
          const { id, packets } = erasure;
          trail.audit(auditRecord(caller, 'erasure', 'created', { erasure_id: id, reason, subject_digest, packets }), at);
        },
      });
      return shownErasure(erasure);
    },

    async get(caller: Caller, id: string): Promise<Erasure> {
      const found = isId(id) ? await store.of(caller).erasures.find(id) : undefined;
      if (found === undefined) throw notFound('erasure');
      return shownErasure(found);
    },

    async list(caller: Caller, query: { limit: number; offset: number; cursor?: string | undefined }) {
      requireOneWay(query);
      const { limit, offset, cursor } = query;
      const scope = `erasures ${caller.tenant_id}`;
      const before = cursor === undefined ? undefined : readCursor(scope, cursor);
      if (before !== undefined && !isId(before)) throw invalid('cursor', 'This cursor does not belong to this list.');
      const { erasures, total } = await store.of(caller).erasures.page({ limit: limit + 1, offset, before });
      const shown = erasures.slice(0, limit);
      const next_cursor = erasures.length > limit ? writeCursor(scope, shown.at(-1)!.id) : null;
      return { erasures: shown.map(shownErasure), total, limit, offset, next_cursor };
    },

    /** Erases the next packets of an erasure, or ends it; returns whether it has ended. Any instance may, at any time: a packet is erased once. */
    async step(tenant: number, id: string): Promise<boolean> {
      const own = store.whole(tenant);
      const found = await own.erasures.find(id);
      if (found === undefined || found.status === 'done') return true;
      const now = clock();
      const committed = () => views.forget();
      const next = await own.erasures.next(found, perStep);
      return eraseTogether(next, (ids) =>
        own.commit({
          ...{ erasures: [id], packets: ids, notifies: true, committed },
          work(transaction) {
            const erasure = transaction.erasures.get(id);
            if (erasure === undefined || erasure.status === 'done') return true;
            const erased = eraseEach(transaction, ids, { erasure, now });
            // Of a person, nothing is left when a step finds nothing. Packets that came since the request are erased too.
            const left = erasure.remaining.filter((packetId) => !ids.includes(packetId));
            const isDone = erasure.subject_digest === null ? left.length === 0 : next.length === 0;
            const packets = erasure.subject_digest === null ? erasure.packets : erasedSoFar(erasure) + erased.length;
            const progress = erased.length === 0 ? erasure.progress : { ...erasure.progress, at: now.toISOString() };
            const isOver = isDone && erased.length === 0;
            const count = isOver ? packets : Math.max(packets, erasure.packets);
            const after: StoredErasure = { ...erasure, status: 'running', remaining: left, progress, packets: count };
            if (isOver) end(transaction, after, now);
            else transaction.erasures.advance(after, erased);
            return isOver;
          },
        }),
      );
    },

    /** Erases packets of a tenant that ended too long ago, in one round with one entry; returns whether there may be more. */
    async retain(tenant: number, days: number): Promise<boolean> {
      const now = clock();
      const before = new Date(now.getTime() - days * dayMs);
      const own = store.whole(tenant);
      const { ids, more } = await own.erasures.ended(before, perStep);
      if (ids.length === 0) return more;
      const committed = () => views.forget();
      await eraseTogether(ids, (some) =>
        own.commit({
          ...{ packets: some, notifies: true, committed },
          work(transaction) {
            const packets = eraseEach(transaction, some, { now }).length;
            if (packets === 0) return;
            const details = { packets, ended_before: before.toISOString() };
            transaction.trail.audit({ event_type: 'erased', resource: 'retention', actor: retentionActor, details }, { now, keyId: null });
          },
        }),
      );
      return more;
    },

    /** Forgets what this instance holds in memory of packets if any instance has erased content since the last call. */
    async recheck(): Promise<void> {
      const version = await store.erasures.version();
      if (version === knownVersion) return;
      if (knownVersion !== undefined) views.forget();
      knownVersion = version;
    },

    /** The tenants whose packets are erased some days after they ended. */
    retaining: () => store.tenants.retaining(retentionDays),
  };
}

export type ErasureService = ReturnType<typeof createErasureService>;

/** The people whose data the packets of a schedule hold. */
const subjectsOf = (document: string): readonly string[] => {
  const { packet } = readJson<Pick<ScheduleRequest, 'packet'>>(document);
  return packet.metadata.subjects ?? [];
};

const erasedSoFar = ({ progress }: StoredErasure): number => progress.rows.packets ?? 0;

/** Erases packets that are not erased yet; returns their ids. */
function eraseEach(transaction: Transaction, ids: readonly string[], { erasure, now }: { erasure?: StoredErasure; now: Date }): string[] {
  const command = { kind: 'erase', actor: erasure?.actor ?? retentionActor, erasureId: erasure?.id ?? null } as const;
  return ids.filter((id) => {
    const packet = transaction.packets.get(id);
    if (packet === undefined || packet.erased === true) return false;
    changeIn(transaction, id, command, { now, keyId: erasure?.key_id ?? null });
    return true;
  });
}

/** Ends an erasure, with an entry that has the digest of its receipt. */
function end({ erasures, trail }: Transaction, erasure: StoredErasure, now: Date): void {
  const done: StoredErasure = { ...erasure, status: 'done', done_at: now.toISOString() };
  erasures.save(done.id, done);
  const { id, actor, key_id, packets } = done;
  const details = { erasure_id: id, packets, receipt_digest: receiptDigest(shownErasure(done)) };
  trail.audit({ event_type: 'erased', resource: 'erasure', actor, details }, { now, keyId: key_id });
}

/** An erasure as callers see it: once it is done, its receipt. */
function shownErasure({
  id,
  status,
  packets,
  not_found,
  subject_digest,
  reason,
  actor,
  created_at,
  done_at,
  progress,
}: StoredErasure): Erasure {
  const shown = { id, status, packets, not_found: [...not_found], subject_digest, reason, requested_by: actor, created_at, done_at };
  if (done_at === null) return shown;
  const at = progress.at ?? done_at;
  const stores = Object.fromEntries(Object.entries(progress.rows).map(([store, count]) => [store, { count, done_at: at }]));
  return { ...shown, stores, delivered: [...progress.delivered], backups_before: done_at };
}
