import { commaList } from '../../kit/comma-list.ts';
import { defined } from '../../kit/defined.ts';
import { invalid } from '../../kit/errors.ts';
import { statuses } from '../model/common.ts';
import type { PacketQuery } from '../model/packet-routes.ts';
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

/** Times are compared as text, and outside these years their ISO text has another length. */
const earliest = Date.parse('0000-01-01T00:00:00.000Z');
const latest = Date.parse('9999-12-31T23:59:59.999Z');

/** Parses a timestamp, if there is one. Without an offset it is in UTC, whatever the time zone of the service. */
export function momentOf(text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  const isWhole = text.length === 'YYYY-MM-DD'.length || /(Z|[+-]\d{2}:?\d{2})$/.test(text);
  const moment = Date.parse(isWhole ? text : `${text}Z`);
  return new Date(Math.min(Math.max(moment, earliest), latest));
}

/** The most tags in one filter. */
const maxTags = 20;

/** Parses the query parameters of a list into a filter. Cursors contain it, with its fields in this order. */
export function filterOf(query: Partial<PacketQuery>): PacketFilter {
  const tags = commaList(query.tags ?? '');
  if (tags.length > maxTags) throw invalid('tags', `tags can have at most ${maxTags} tags.`);
  const { source_agent, target_agent, priority, hitl_required, claimed_by } = query;
  return defined({
    statuses: statusesOf(query.status),
    source_agent,
    target_agent,
    tags: tags.length === 0 ? undefined : [...new Set(tags)].sort(),
    priority,
    hitl_required,
    created_after: momentOf(query.created_after),
    created_before: momentOf(query.created_before),
    claimed_by,
    parent_packet_id: query.parent_packet_id?.toLowerCase(),
    updated_after: momentOf(query.updated_after),
    updated_before: momentOf(query.updated_before),
  });
}

/** Refuses a page that is requested by cursor and offset at once. */
export function requireOneWay({ cursor, offset }: { cursor?: string | undefined; offset: number }): void {
  if (cursor !== undefined && offset > 0) throw invalid('cursor', 'cursor and offset are mutually exclusive.');
}
