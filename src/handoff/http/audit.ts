import type { Mount } from '../../kit/http/mount.ts';
import { routes } from '../model/api.ts';
import type { Caller } from '../service/access.ts';
import type { AuditFilter } from '../store/events.ts';
import type { Store } from '../store/store.ts';
import { momentOf } from './query.ts';

/** The audit log over HTTP. */
export function mountAudit(mount: Mount<Caller>, store: Store): void {
  mount(routes.listAudit, async ({ query }, { caller, signal }) => {
    const { actor, action, packet_id, created_after, created_before, limit, offset } = query;
    const filter: AuditFilter = {
      ...(actor === undefined ? {} : { actor }),
      ...(action === undefined ? {} : { action }),
      ...(packet_id === undefined ? {} : { packet_id: packet_id.toLowerCase() }),
      ...(created_after === undefined ? {} : { created_after: momentOf(created_after) }),
      ...(created_before === undefined ? {} : { created_before: momentOf(created_before) }),
    };
    const { rows, total } = await store.of(caller.tenant_number, signal).events.audit(filter, { limit, offset });
    return {
      entries: rows.map(({ id, packet_id: packet, actor: by, event_type, resource, details, timestamp }) => ({
        id,
        packet_id: packet,
        actor: by,
        action: event_type,
        resource,
        details: JSON.parse(details),
        timestamp,
      })),
      total,
      limit,
      offset,
    };
  });
}
