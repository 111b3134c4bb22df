import type { PacketEvent } from './packet.ts';

/** Whether the key that caused an event is a source of the packet's question: it created or claimed the packet, asked the question or changed it. */
export function makesSource({ event_type, details }: Pick<PacketEvent, 'event_type' | 'details'>): boolean {
  if (event_type === 'created' || event_type === 'claimed' || event_type === 'awaiting_human') return true;
  if (event_type !== 'updated' && event_type !== 'in_progress') return false;
  return (details.fields as readonly string[] | undefined)?.includes('hitl') ?? false;
}
