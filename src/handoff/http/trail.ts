import { defined } from '../../kit/defined.ts';
import { routes } from '../model/api.ts';
import { momentOf } from '../service/filters.ts';
import type { TrailService } from '../service/trail.ts';
import type { HandoffMount } from './mount.ts';

/** Mounts the routes of packet histories and the audit log. */
export function mountTrail(mount: HandoffMount, trail: TrailService): void {
  mount(routes.packetHistory, ({ params }, { caller }) => trail.history(caller, params.id));
  mount(routes.listAudit, ({ query }, { caller, signal }) => {
    const { actor, action, limit, offset } = query;
    const filter = defined({
      actor,
      action,
      packet_id: query.packet_id?.toLowerCase(),
      created_after: momentOf(query.created_after),
      created_before: momentOf(query.created_before),
    });
    return trail.audit(caller, filter, { limit, offset }, signal);
  });
}
