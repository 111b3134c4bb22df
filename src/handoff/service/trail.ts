import { isDateTime } from '../../kit/dates.ts';
import { invalid, notFound } from '../../kit/errors.ts';
import { readJson } from '../../kit/json.ts';
import { isId } from '../../kit/uuid.ts';
import type { HistoryEvent } from '../model/packet.ts';
import type { AuditFilter } from '../store/audit-filter.ts';
import type { Page } from '../store/page-size.ts';
import type { Store } from '../store/store.ts';
import type { AuditPlace, AuditRecord } from '../store/trail.ts';
import { auditEntryOf } from './audit.ts';
import { actorOf, type Caller } from './authentication.ts';
import { readCursor, writeCursor } from './cursor.ts';
import { requireOneWay } from './filters.ts';

/** The details of a stored entry; empty once they are erased. */
const detailsOf = (details: string | null): Record<string, unknown> => (details === null ? {} : readJson(details));

/** Reads packet histories and the audit log. */
export function createTrailService(store: Store) {
  return {
    /** The history of a packet, oldest first. @throws ServiceError 404 */
    async history(caller: Caller, id: string): Promise<{ packet_id: string; events: HistoryEvent[] }> {
      const tenant = store.of(caller);
      const known = isId(id) && (await tenant.packets.stamp(id)) !== undefined;
      if (!known) throw notFound('packet');
      const events = await tenant.trail.history(id);
      return {
        packet_id: id,
        events: events.map(({ timestamp, event_type, actor, key_id, details }) => ({
          timestamp,
          event_type,
          actor,
          key_id,
          details: detailsOf(details),
        })),
      };
    },

    /** A page of the tenant's audit log, newest first, with the number of entries. The read is cancelled by `signal`. */
    async audit(caller: Caller, filter: AuditFilter, { cursor, ...page }: Page & { cursor?: string | undefined }, signal: AbortSignal) {
      requireOneWay({ cursor, ...page });
      const scope = `audit ${caller.tenant_id} ${JSON.stringify(filter)}`;
      const after = cursor === undefined ? undefined : placeIn(readCursor(scope, cursor));
      const { rows, hasMore, ...total } = await store.of(caller, signal).trail.audit(filter, { ...page, after });
      const last = rows.at(-1);
      const next_cursor = hasMore && last !== undefined ? writeCursor(scope, `${last.timestamp} ${last.position}`) : null;
      return { entries: rows.map(auditEntryOf), ...total, ...page, next_cursor };
    },
  };
}

/** The place in a cursor. A caller can forge one. @throws ServiceError 400 on `cursor` */
function placeIn(text: string): AuditPlace {
  const [timestamp = '', position = '', ...rest] = text.split(' ');
  if (rest.length > 0 || !isDateTime(timestamp) || !/^\d{1,15}$/.test(position))
    throw invalid('cursor', 'This cursor does not belong to this list.');
  return { timestamp, position: Number(position) };
}

export type TrailService = ReturnType<typeof createTrailService>;

/** An entry of the audit log for what a caller did. */
export function auditRecord(
  caller: Caller,
  resource: AuditRecord['resource'],
  event_type: string,
  details: Record<string, unknown>,
): AuditRecord {
  return { event_type, resource, actor: actorOf(caller), details };
}
