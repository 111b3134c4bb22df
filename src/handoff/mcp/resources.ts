import { invalid } from '../../kit/errors.ts';
import { present } from '../face/call.ts';
import { routes } from '../model/api.ts';
import { claimableStatus } from '../rules/packet-life.ts';
import type { Session } from './session.ts';
import { briefText, fenced } from './text.ts';

const json = 'application/json';

/** The templates of resources. */
export const resourceTemplates = [
  { name: 'packet', title: 'A packet', uriTemplate: 'packet://{id}', mimeType: json, description: 'The whole packet.' },
  {
    name: 'brief',
    title: 'A brief of a packet',
    uriTemplate: 'packet://{id}/brief',
    mimeType: 'text/plain',
    description: 'What the next agent needs to know of the packet and its ancestors.',
  },
  {
    name: 'history',
    title: 'The history of a packet',
    uriTemplate: 'packet://{id}/history',
    mimeType: json,
    description: 'Its events, oldest first.',
  },
  {
    name: 'inbox',
    title: 'The inbox of an agent',
    uriTemplate: 'inbox://{agent_id}',
    mimeType: json,
    description: 'The packets that wait for the agent.',
  },
];

/** The resources that a client is shown: the inbox of its agent. */
export function resourcesOf({ agentId }: Session) {
  if (agentId === undefined) return [];
  return [{ uri: `inbox://${encodeURIComponent(agentId)}`, name: 'inbox', title: `The inbox of ${agentId}`, mimeType: json }];
}

/** How many packets of an inbox are shown. */
const inboxSize = 50;

/** Reads a resource; undefined when no resource can have this URI. @throws ServiceError 404 for an unknown packet */
export async function readResource({ call, packet }: Session, uri: string): Promise<{ mimeType: string; text: string } | undefined> {
  const [, scheme, authority = '', path = ''] = /^(packet|inbox):\/\/([^/?#]+)(\/brief|\/history)?$/.exec(uri) ?? [];
  if (scheme === 'inbox' && path === '') {
    const query = { status: claimableStatus, scheduled: false, target_agent: decoded(authority), limit: inboxSize, order: 'asc' };
    return { mimeType: json, text: JSON.stringify(await call(routes.listPackets, { query })) };
  }
  if (scheme !== 'packet') return undefined;
  const params = { id: decoded(authority) };
  if (path === '/brief') return { mimeType: 'text/plain', text: fenced(briefText((await call(routes.packetBrief, { params }))!)) };
  const found = path === '/history' ? await call(routes.packetHistory, { params }) : present(await packet(params.id));
  return { mimeType: json, text: JSON.stringify(found) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid('uri', 'The URI is not valid: it has a % that begins no encoded character.');
  }
}
