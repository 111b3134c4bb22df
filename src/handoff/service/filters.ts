import { invalid } from '../../kit/errors.ts';
import { statuses } from '../model/common.ts';
import type { PacketQuery } from '../model/packet-routes.ts';
import type { PacketFilter } from '../store/packet-filter.ts';

/** The parts of a comma-separated parameter, without empty ones; undefined when it was not given. */
function listOf(text: string | undefined): string[] | undefined {
  if (text === undefined) return undefined;
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

/** Parses `status=created,claimed`. @throws ServiceError 400 when a status is unknown or none is given */
export function statusesOf(text: string | undefined, field = 'status'): string[] | undefined {
  const list = listOf(text);
  if (list === undefined) return undefined;
  const unknown = list.find((status) => !(statuses as readonly string[]).includes(status));
  if (unknown !== undefined || list.length === 0)
    throw invalid(field, `${field} must be one or more of ${statuses.join(', ')}, comma-separated.`);
  return [...new Set(list)].sort();
}

/** Times are compared as text, and outside these years their ISO text has another length. */
const earliest = Date.parse('0000-01-01T00:00:00.000Z');
const latest = Date.parse('9999-12-31T23:59:59.999Z');

/** Parses a timestamp. Without an offset it is in UTC, whatever the time zone of the service. */
export function momentOf(text: string): Date {
  const isWhole = text.length === 'YYYY-MM-DD'.length || /(Z|[+-]\d{2}:?\d{2})$/.test(text);
  const moment = Date.parse(isWhole ? text : `${text}Z`);
  return new Date(Math.min(Math.max(moment, earliest), latest));
}

/** The most tags in one filter. */
const maxTags = 20;

/** Parses the query parameters of a list into a filter. */
export function filterOf({
  status,
  source_agent,
  target_agent,
  tags,
  priority,
  hitl_required,
  created_after,
  created_before,
  claimed_by,
  parent_packet_id,
  updated_after,
  updated_before,
}: Partial<PacketQuery>): PacketFilter {
  const wantedStatuses = statusesOf(status);
  const wantedTags = listOf(tags);
  if ((wantedTags?.length ?? 0) > maxTags) throw invalid('tags', `tags can have at most ${maxTags} tags.`);
  return {
    ...(wantedStatuses === undefined ? {} : { statuses: wantedStatuses }),
    ...(source_agent === undefined ? {} : { source_agent }),
    ...(target_agent === undefined ? {} : { target_agent }),
    ...(wantedTags === undefined || wantedTags.length === 0 ? {} : { tags: [...new Set(wantedTags)].sort() }),
    ...(priority === undefined ? {} : { priority }),
    ...(hitl_required === undefined ? {} : { hitl_required }),
    ...(created_after === undefined ? {} : { created_after: momentOf(created_after) }),
    ...(created_before === undefined ? {} : { created_before: momentOf(created_before) }),
    ...(claimed_by === undefined ? {} : { claimed_by }),
    ...(parent_packet_id === undefined ? {} : { parent_packet_id: parent_packet_id.toLowerCase() }),
    ...(updated_after === undefined ? {} : { updated_after: momentOf(updated_after) }),
    ...(updated_before === undefined ? {} : { updated_before: momentOf(updated_before) }),
  };
}

/** Refuses a page that is requested by cursor and offset at once. */
export function requireOneWay({ cursor, offset }: { cursor?: string | undefined; offset: number }): void {
  if (cursor !== undefined && offset > 0) throw invalid('cursor', 'cursor and offset are mutually exclusive.');
}
