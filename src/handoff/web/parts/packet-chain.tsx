import { Link } from 'react-router';

import { Load } from '../../../kit/web/app/load.tsx';
import { Panel } from '../../../kit/web/components/layout.tsx';
import type { Packet } from '../../model/packet.ts';
import type { ChainNode } from '../data/packet-chain.ts';
import { usePacketChain } from '../data/queries.ts';
import styles from './packet-chain.module.css';
import { Name, StatusBadge } from './texts.tsx';

/** The chain of a packet: its ancestors, the packets that continue it, and those that continue them. */
export function PacketChain({ packet }: { packet: Packet }) {
  const chain = usePacketChain(packet);
  // Most packets have none, so nothing is shown before it is known.
  if (chain.data === undefined ? chain.error === null : chain.data.children.length === 0) return null;
  return (
    <Panel title="Chain">
      <Load query={chain} what="The chain">
        {(oldest) => (
          <ul className={styles.chain}>
            <Branch node={oldest} current={packet.id} />
          </ul>
        )}
      </Load>
    </Panel>
  );
}

function Branch({ node: { packet, children }, current }: { node: ChainNode; current: string }) {
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
