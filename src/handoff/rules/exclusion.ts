import type { AnyPacket, Command } from './packet.ts';
import { allows } from './packet-life.ts';

/**
 * What a command does to a question that excludes its source (`hitl.exclude_source`), if only another key may do that: it
 * answers the question, withdraws it, changes it while it is open, or makes it needless before it is asked. Undefined
 * otherwise: to give the packet up, by failing or deleting it, grants no approval.
 */
export function deedOfOutsiders(packet: AnyPacket, command: Command): 'answered' | 'withdrawn' | 'changed' | undefined {
  const { hitl } = packet;
  if (!hitl?.exclude_source) return undefined;
  if (command.kind === 'respond') return 'answered';
  if (hitl.response !== null) return undefined;
  if (command.kind === 'withdraw') return 'withdrawn';
  if (command.kind !== 'patch' || command.patch.hitl === undefined) return undefined;
  const change = command.patch.hitl;
  const lifts = change === null || change.exclude_source === false || change.required === false;
  return lifts || allows(packet, 'respond') ? 'changed' : undefined;
}
