import { commaList, quotedList } from '../../kit/comma-list.ts';
import { momentOf } from '../../kit/dates.ts';
import { defined } from '../../kit/defined.ts';
import { invalid } from '../../kit/errors.ts';
import { statuses } from '../model/common.ts';
import type { PacketQuery } from '../model/packet-routes.ts';
import { subjectDigest } from '../rules/subjects.ts';
import type { PacketFilter } from '../store/packet-filter.ts';

/** Parses `status=created,claimed`. @throws ServiceError 400 when a status is unknown or none is given */
export function statusesOf(text: string | undefined, field = 'status'): string[] | undefined {
  if (text === undefined) return undefined;
  const list = commaList(text);
  const unknown = list.find((status) => !(statuses as readonly string[]).includes(status));
  if (unknown !== undefined || list.length === 0)
    throw invalid(field, `${field} must be one or more of ${statuses.join(', ')}, comma-separated.`);
  return [...new Set(list)].sort();
}

/** The most tags in one filter. */
const maxTags = 20;

/** Parses the query parameters of a list into a filter. Cursors contain it, with its fields in this order. */
export function filterOf(query: Partial<PacketQuery>): PacketFilter {
  const tags = quotedList(query.tags ?? '');
  if (tags.length > maxTags) throw invalid('tags', `tags can have at most ${maxTags} tags.`);
  const { source_agent, target_agent, priority, hitl_required, claimed_by, scheduled, overdue, subject } = query;
  return defined({
    statuses: statusesOf(query.status),
    source_agent,
    target_agent,
    tags: tags.length === 0 ? undefined : [...new Set(tags)].sort(),
    priority,
    // Cursors contain the filter, and anybody can read them.
    subject_digest: subject === undefined ? undefined : subjectDigest(subject),
    hitl_required,
    created_after: momentOf(query.created_after),
    created_before: momentOf(query.created_before),
    claimed_by,
    parent_packet_id: query.parent_packet_id?.toLowerCase(),
    updated_after: momentOf(query.updated_after),
    updated_before: momentOf(query.updated_before),
    scheduled,
    overdue,
    due_before: momentOf(query.due_before),
  });
}

/** Refuses a page that is requested by cursor and offset at once. */
export function requireOneWay({ cursor, offset }: { cursor?: string | undefined; offset: number }): void {
  if (cursor !== undefined && offset > 0) throw invalid('cursor', 'cursor and offset are mutually exclusive.');
}
