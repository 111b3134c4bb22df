import { ApiError } from '../../../kit/client-errors.ts';
import type { HandoffClient } from '../../client/client.ts';
import type { Packet, PacketSummary } from '../../model/packet.ts';

/** The most ancestors and the most successors that are shown. */
const maxAncestors = 20;
const maxSuccessors = 100;

/** A packet of a chain, with the packets that continue it. */
export interface ChainNode {
  readonly packet: PacketSummary | Packet;
  readonly children: ChainNode[];
}

/** Reads the chain of a packet from its oldest ancestor on. Of the ancestors, only those that lead to the packet are read. */
export async function readChain(client: HandoffClient, packet: Packet, signal: AbortSignal): Promise<ChainNode> {
  const own: ChainNode = { packet, children: [] };
  await addSuccessors(client, own, signal);
  let top = own;
  for (let step = 0; step < maxAncestors && top.packet.parent_packet_id !== null; step += 1) {
    const parent = await client.getPacket({ params: { id: top.packet.parent_packet_id }, signal }).catch(unlessRemoved);
    if (parent === undefined) break;
    top = { packet: parent, children: [top] };
  }
  return top;
}

/** Undefined for a packet that was removed permanently. */
function unlessRemoved(error: unknown): undefined {
  if (!(error instanceof ApiError && error.status_code === 404)) throw error;
}

async function addSuccessors(client: HandoffClient, root: ChainNode, signal: AbortSignal): Promise<void> {
  const open = [root];
  for (let found = 0; open.length > 0 && found < maxSuccessors; ) {
    const node = open.shift()!;
    const query = { parent_packet_id: node.packet.id, order: 'asc', limit: maxSuccessors - found } as const;
    const { packets } = await client.listPackets({ query, signal });
    const children = packets.map((packet) => ({ packet, children: [] }));
    node.children.push(...children);
    open.push(...children);
    found += packets.length;
  }
}
