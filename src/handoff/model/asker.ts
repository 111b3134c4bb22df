import type { Packet, PacketSummary } from './packet.ts';

/** The name of the agent that asked the question of a packet. */
export const askerName = ({ hitl, metadata }: Pick<Packet | PacketSummary, 'hitl' | 'metadata'>): string =>
  hitl?.asked_by?.agent_name ?? metadata.source_agent.name;
