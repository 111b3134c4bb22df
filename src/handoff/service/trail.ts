import { notFound } from '../../kit/errors.ts';
import { isId } from '../../kit/id.ts';
import { readJson } from '../../kit/json.ts';
import type { HistoryEvent } from '../model/packet.ts';
import type { Page } from '../store/page-size.ts';
import type { Store } from '../store/store.ts';
import type { AuditFilter, AuditRecord } from '../store/trail.ts';
import { auditEntryOf } from './audit.ts';
import { actorOf, type Caller } from './authentication.ts';

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
    async audit(caller: Caller, filter: AuditFilter, page: Page, signal: AbortSignal) {
      const { rows, ...total } = await store.of(caller, signal).trail.audit(filter, page);
      return { entries: rows.map(auditEntryOf), ...total, ...page };
    },
  };
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
