import { notFound } from '../../kit/errors.ts';
import { isId } from '../../kit/id.ts';
import { readJson } from '../../kit/json.ts';
import type { Turns } from '../../kit/turns.ts';
import type { Brief } from '../model/brief.ts';
import type { Packet } from '../model/packet.ts';
import { BriefBuilder } from '../rules/brief.ts';
import type { Store } from '../store/store.ts';
import type { Caller } from './authentication.ts';

/** What to put into a brief. */
interface BriefOptions {
  readonly maxChars: number;
  /** The most ancestors. */
  readonly depth: number;
  readonly format: 'json' | 'markdown';
}

/** Returns a function that reads a packet and its ancestors and returns their brief, as JSON and as text. */
export function createBriefService(store: Store, turns: Turns) {
  return async (caller: Caller, id: string, { maxChars, depth, format }: BriefOptions): Promise<{ brief: Brief; text: string }> => {
    const { packets } = store.of(caller.tenant_number);
    const read = async (packetId: string): Promise<Packet | undefined> => {
      const found = await packets.find(packetId);
      await turns.take(caller.tenant_number, { first: true });
      return found && (readJson(found.packet) as Packet);
    };
    const packet = isId(id) ? await read(id) : undefined;
    if (packet === undefined) throw notFound('packet');

    const builder = new BriefBuilder(maxChars, format, (packetId) => `/api/v1/packets/${packetId}`);
    builder.add(packet);
    const seen = new Set([id]);
    let parent = packet.parent_packet_id;
    while (parent !== null) {
      // A packet may have a megabyte, and a brief fifty packets.
      await turns.take(caller.tenant_number);
      const ancestor = seen.size <= depth && builder.hasRoom && !seen.has(parent) ? await read(parent) : undefined;
      if (ancestor === undefined) {
        builder.omitAncestors(parent);
        break;
      }
      builder.add(ancestor);
      seen.add(parent);
      parent = ancestor.parent_packet_id;
    }
    return builder.finish(id);
  };
}

export type BriefService = ReturnType<typeof createBriefService>;
