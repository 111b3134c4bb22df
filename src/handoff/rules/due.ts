import type { AnyPacket } from './packet.ts';
import { allows } from './packet-life.ts';

/**
 * When the sweeper must process the packet: at the end of its lease, at the reminder of its question, or at its timeout
 * unless `on_timeout` is `keep`; null: never.
 */
export function dueAt(packet: AnyPacket): string | null {
  const { hitl, lease } = packet;
  if (lease !== null && lease.expires_at !== null) return lease.expires_at;
  if (hitl === null || !allows(packet, 'respond')) return null;
  const times = [hitl.remind_at ?? null, (hitl.on_timeout ?? 'keep') === 'keep' ? null : hitl.expires_at];
  // ISO 8601 texts of the same form are in order of time.
  return times.filter((time) => time !== null).toSorted()[0] ?? null;
}
