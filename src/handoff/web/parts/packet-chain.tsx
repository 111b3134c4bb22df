import { Link } from 'react-router';

import { Panel } from '../../../kit/web/components/layout.tsx';
import type { HandoffClient } from '../../client/client.ts';
import type { Packet, PacketSummary } from '../../model/packet.ts';
import { useAnswer } from '../data/queries.ts';
import styles from './packet-chain.module.css';
import { Name, StatusBadge } from './texts.tsx';

/** The most ancestors and the most successors that are shown. */
const maxAncestors = 20;
const maxSuccessors = 100;

interface Node {
  readonly packet: PacketSummary | Packet;
  readonly children: Node[];
}

/** The chain of a packet: its ancestors, the packets that continue it, and those that continue them. */
export function PacketChain({ packet }: { packet: Packet }) {
  const chain = useAnswer(['chain', packet.id, packet.revision], (client, signal) => readChain(client, packet, signal)).data;
  // Most packets have none.
  if (chain === undefined || (chain.children.length === 0 && chain.packet.id === packet.id)) return null;
  return (
    <Panel title="Chain">
      <ul className={styles.chain}>
        <Branch node={chain} current={packet.id} />
      </ul>
    </Panel>
  );
}

function Branch({ node: { packet, children }, current }: { node: Node; current: string }) {
  const { id, status, metadata, context } = packet;
  return (
    <li>
      <div className={styles.node} aria-current={id === current ? 'true' : undefined}>
        <StatusBadge status={status} />
        <span>
          <Name>{metadata.source_agent.name}</Name> → <Name>{metadata.target_agent.name}</Name>
        </span>
        {id === current ? (
          <span className={styles.text}>This packet</span>
        ) : (
          <Link to={`/packets/${id}`} className={styles.text!} dir="auto">
            {context.summary}
          </Link>
        )}
      </div>
      {children.length === 0 ? null : (
        <ul>
          {children.map((child) => (
            <Branch key={child.packet.id} node={child} current={current} />
          ))}
        </ul>
      )}
    </li>
  );
}

/** Reads the chain from its oldest ancestor on. Of the ancestors, only those that lead to the packet are read. */
async function readChain(client: HandoffClient, packet: Packet, signal: AbortSignal): Promise<Node> {
  const own: Node = { packet, children: [] };
  await addSuccessors(client, own, signal);
  let top = own;
  for (let step = 0; step < maxAncestors && top.packet.parent_packet_id !== null; step += 1) {
    const parent = await client.getPacket({ params: { id: top.packet.parent_packet_id }, signal }).catch(() => undefined);
    // It was removed permanently.
    if (parent === undefined) break;
    top = { packet: parent, children: [top] };
  }
  return top;
}

async function addSuccessors(client: HandoffClient, root: Node, signal: AbortSignal): Promise<void> {
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
