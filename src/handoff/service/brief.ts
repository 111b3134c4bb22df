import { notFound } from '../../kit/errors.ts';
import { isId } from '../../kit/uuid.ts';
import type { Brief } from '../model/brief.ts';
import { BriefBuilder } from '../rules/brief.ts';
import type { Caller } from './authentication.ts';
import type { PacketViews } from './packet-views.ts';

/** What to put into a brief. */
interface BriefOptions {
  readonly maxChars: number;
  /** The most ancestors. */
  readonly depth: number;
  readonly format: 'json' | 'markdown';
}

/** The most characters of the packets that are read for one brief: those of a page of the API, in bytes. */
const maxRead = 16 * 1024 * 1024;

/** Returns a function that reads a packet and its ancestors and returns their brief, as JSON and as text. */
export function createBriefService(views: Pick<PacketViews, 'of'>) {
  return async (caller: Caller, id: string, { maxChars, depth, format }: BriefOptions): Promise<{ brief: Brief; text: string }> => {
    const view = isId(id) ? await views.of(caller, id) : undefined;
    if (view === undefined) throw notFound('packet');

    const builder = new BriefBuilder(maxChars, format, (packetId) => `/api/v1/packets/${packetId}`);
    builder.add(view.packet);
    const seen = new Set([id]);
    let { length } = view;
    let parent = view.packet.parent_packet_id;
    // Who sees a packet sees the briefs of its ancestors.
    const tenant = { tenant_number: caller.tenant_number };
    while (parent !== null) {
      const fitsMore = seen.size <= depth && length < maxRead && builder.fitsMore;
      const ancestor = fitsMore && !seen.has(parent) ? await views.of(tenant, parent) : undefined;
      if (ancestor === undefined) {
        builder.omitAncestors(parent);
        break;
      }
      builder.add(ancestor.packet);
      seen.add(parent);
      length += ancestor.length;
      parent = ancestor.packet.parent_packet_id;
    }
    return builder.finish(id);
  };
}

export type BriefService = ReturnType<typeof createBriefService>;
