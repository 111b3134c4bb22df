import type { AnyPacket } from './packet.ts';
import { allows } from './packet-life.ts';

/**
 * When the sweeper must process the packet: at the end of its lease, at the reminder of its question, or at its timeout
 * unless `on_timeout` is `keep`; null: never.
 * @param isOwn whether it was made to ask about an action whose execution has not begun: then it ends with the approval
 */
export function dueAt(packet: AnyPacket, isOwn = false): string | null {
  const { hitl, lease } = packet;
  if (lease !== null && lease.expires_at !== null) return lease.expires_at;
  if (hitl === null) return null;
  if (!allows(packet, 'respond')) return isOwn && allows(packet, 'expire') ? (hitl.decision?.valid_until ?? null) : null;
  const times = [hitl.remind_at ?? null, hitl.step?.changes_at ?? null, (hitl.on_timeout ?? 'keep') === 'keep' ? null : hitl.expires_at];
  // ISO 8601 texts of the same form are in order of time.
  return times.filter((time) => time !== null).toSorted()[0] ?? null;
}
