import { momentOf } from '../../kit/dates.ts';
import { defined } from '../../kit/defined.ts';
import { HttpResponse, TextPieces } from '../../kit/http/response.ts';
import { subjectDigest } from '../rules/subjects.ts';
import type { AuditService } from '../service/audit.ts';
import type { TrailService } from '../service/trail.ts';
import { handlersOf } from './handlers.ts';

type FilterQuery = Partial<
  Record<'actor' | 'action' | 'packet_id' | 'key_id' | 'person' | 'subject' | 'created_after' | 'created_before', string | undefined>
>;

/** The handlers of the routes of packet histories and the audit log. */
export const trailHandlers = (trail: TrailService, audit: AuditService) =>
  handlersOf({
    packetHistory: ({ params }, { caller }) => trail.history(caller, params.id),
    listAudit: ({ query }, { caller, signal }) => {
      const { limit, offset, cursor } = query;
      return trail.audit(caller, filterOf(query), { limit, offset, cursor }, signal);
    },
    auditHead: (_, { caller }) => audit.head(caller),
    auditKeys: () => audit.keys(),
    exportAudit: async ({ query: { from, to, format, ...query } }, { caller }) => {
      const body = new TextPieces(await audit.export(caller, { ...defined({ from, to }), ...filterOf(query) }, format));
      return new HttpResponse<never>({ ...(format === 'csv' ? { headers: { 'content-type': 'text/csv; charset=utf-8' } } : {}), body });
    },
  });

/** The filter of a query. */
const filterOf = ({ actor, action, packet_id, key_id, person, subject, created_after, created_before }: FilterQuery) =>
  defined({
    actor,
    action,
    packet_id: packet_id?.toLowerCase(),
    key_id: key_id?.toLowerCase(),
    person,
    subject_digest: subject === undefined ? undefined : subjectDigest(subject),
    created_after: momentOf(created_after),
    created_before: momentOf(created_before),
  });
