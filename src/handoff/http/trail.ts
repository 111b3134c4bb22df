import { defined } from '../../kit/defined.ts';
import { momentOf } from '../service/filters.ts';
import type { TrailService } from '../service/trail.ts';
import { handlersOf } from './handlers.ts';

/** The handlers of the routes of packet histories and the audit log. */
export const trailHandlers = (trail: TrailService) =>
  handlersOf({
    packetHistory: ({ params }, { caller }) => trail.history(caller, params.id),
    listAudit: ({ query }, { caller, signal }) => {
      const { actor, action, limit, offset } = query;
      const filter = defined({
        actor,
        action,
        packet_id: query.packet_id?.toLowerCase(),
        created_after: momentOf(query.created_after),
        created_before: momentOf(query.created_before),
      });
      return trail.audit(caller, filter, { limit, offset }, signal);
    },
  });
