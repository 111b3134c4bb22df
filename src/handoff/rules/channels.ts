import { hash } from 'node:crypto';

import { invalid } from '../../kit/errors.ts';
import { isId } from '../../kit/uuid.ts';
import { statuses } from '../model/common.ts';

/** The most channels that one stream may subscribe to. */
export const maxChannels = 100;

const maxAgentLength = 255;

/** The parts of an event that determine its channels. */
export interface Addressed {
  readonly packet_id: string | null;
  /** The packet's status after the event. */
  readonly status: string | null;
  readonly source_agent: string | null;
  readonly target_agent: string | null;
  readonly claimant: string | null;
}

/** The channels that an event belongs to. */
export function channelsOf({ packet_id, status, source_agent, target_agent, claimant }: Addressed): readonly string[] {
  const agents = new Set([source_agent, target_agent, claimant]);
  const named = (kind: string, value: string | null) => (value === null ? [] : [`${kind}:${value}`]);
  return [...named('status', status), ...named('packet', packet_id), ...[...agents].flatMap((agent) => named('agent', agent))];
}

/**
 * Parses and normalises the channels of a subscription: `status:<status>`, `packet:<packet_id>`, `agent:<agent_id>`.
 * @param field the field named in the error
 * @throws ServiceError 400 for an invalid channel, or more than `maxChannels`
 */
export function parseChannels(given: readonly string[], field: string): readonly string[] {
  if (given.length > maxChannels) throw invalid(field, `A stream can subscribe to at most ${maxChannels} channels.`);
  return given.map((text) => parseChannel(text, field));
}

function parseChannel(text: string, field: string): string {
  const at = text.indexOf(':');
  const [kind, value] = [text.slice(0, at), text.slice(at + 1)];
  switch (at === -1 ? undefined : kind) {
    case 'status':
      if (!(statuses as readonly string[]).includes(value))
        throw invalid(field, `A status channel must name one of ${statuses.join(', ')}, as in status:created.`);
      return text;
    case 'packet':
      if (!isId(value.toLowerCase())) throw invalid(field, 'A packet channel must name a packet by its UUID: packet:<packet_id>.');
      return `packet:${value.toLowerCase()}`;
    case 'agent':
      if (value.trim() === '' || value.length > maxAgentLength)
        throw invalid(field, `An agent channel must name an agent in 1 to ${maxAgentLength} characters: agent:<agent_id>.`);
      return text;
    default:
      throw invalid(field, 'A channel must be status:<status>, packet:<packet_id> or agent:<agent_id>.');
  }
}

/** The id of the event at a position of a tenant's trail, unique over all tenants. */
export function eventId(tenantId: string, position: number): string {
  return `${position}-${hash('sha256', tenantId).slice(0, 12)}`;
}

/** The position of an event id; undefined when it is not an event id of this tenant. */
export function positionOf(tenantId: string, id: string): number | undefined {
  const position = Number(/^(\d{1,15})-/.exec(id)?.[1] ?? Number.NaN);
  return Number.isSafeInteger(position) && eventId(tenantId, position) === id ? position : undefined;
}
