import type { AnyPacket, Decision } from './packet.ts';
import { allows, touched } from './packet-life.ts';
import { isOverdue } from './question.ts';

/**
 * The packet after the reminder of its open question, and the event; undefined when none is due. When the time to answer is
 * over, as after a pause of the service, the reminder is dropped.
 */
export function remind<P extends AnyPacket>(packet: P, now: Date): Decision<P> | undefined {
  const { hitl } = packet;
  if (hitl === null || !allows(packet, 'respond') || !hitl.remind_at || now.getTime() < Date.parse(hitl.remind_at)) return undefined;
  const reminded: P = { ...touched(packet, now), hitl: { ...hitl, remind_at: null } };
  if (isOverdue(hitl, now)) return { packet: reminded, events: [], searchable: false };
  const details = { ...(hitl.question_id ? { question_id: hitl.question_id } : {}), responder: hitl.responder ?? null };
  const event = { event_type: 'hitl_reminded', type: 'hitl.reminder', actor: 'system:sweeper', details, notifies: 'reminded' } as const;
  return { packet: reminded, events: [event], searchable: false };
}
