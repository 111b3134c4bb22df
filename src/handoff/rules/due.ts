import type { AnyPacket } from './packet.ts';
import { allows } from './packet-life.ts';
import { heldUntil, overdueAt } from './times.ts';

/**
 * When the sweeper must process the packet: at the end of its lease, at the reminder of its question, at its timeout unless
 * `on_timeout` is `keep`, at its `not_before` or at its `due_at`; null: never.
 * @param isOwn whether it was made to ask about an action whose execution has not begun: then it ends with the approval
 */
export function dueAt(packet: AnyPacket, isOwn = false): string | null {
  const { hitl, lease, not_before, due_at } = packet;
  if (hitl === null && lease === null && not_before === undefined && due_at === undefined) return null;
  const times = [heldUntil(packet), overdueAt(packet)];
  if (lease !== null && lease.expires_at !== null) times.push(lease.expires_at);
  else if (hitl !== null && allows(packet, 'respond'))
    times.push(hitl.remind_at ?? null, hitl.step?.changes_at ?? null, (hitl.on_timeout ?? 'keep') === 'keep' ? null : hitl.expires_at);
  else if (hitl !== null && isOwn && allows(packet, 'expire')) times.push(hitl.decision?.valid_until ?? null);
  // ISO 8601 texts of the same form are in order of time.
  return times.filter((time) => time !== null).toSorted()[0] ?? null;
}
