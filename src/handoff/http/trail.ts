import type { Mount } from '../../kit/http/mount.ts';
import { routes } from '../model/api.ts';
import type { HandoffRoute } from '../model/route.ts';
import type { Caller } from '../service/authentication.ts';
import { momentOf } from '../service/filters.ts';
import type { TrailService } from '../service/trail.ts';

/** Mounts the routes of packet histories and the audit log. */
export function mountTrail(mount: Mount<Caller, HandoffRoute>, trail: TrailService): void {
  mount(routes.packetHistory, ({ params }, { caller }) => trail.history(caller, params.id));
  mount(routes.listAudit, ({ query }, { caller, signal }) => {
    const { actor, action, packet_id, created_after, created_before, limit, offset } = query;
    const filter = {
      ...(actor === undefined ? {} : { actor }),
      ...(action === undefined ? {} : { action }),
      ...(packet_id === undefined ? {} : { packet_id: packet_id.toLowerCase() }),
      ...(created_after === undefined ? {} : { created_after: momentOf(created_after) }),
      ...(created_before === undefined ? {} : { created_before: momentOf(created_before) }),
    };
    return trail.audit(caller, filter, { limit, offset }, signal);
  });
}
