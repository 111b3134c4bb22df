import type { AnyPacket, Decision } from './packet.ts';
import { touched } from './packet-life.ts';
import { hitlOf, isAwaited, latestQuestion } from './question-state.ts';

/**
 * The packet after the reminder of its open question, and the event; undefined when none is due. When the time to answer is
 * over, as after a pause of the service, the reminder is dropped.
 */
export function remind<P extends AnyPacket>(packet: P, now: Date): Decision<P> | undefined {
  const latest = latestQuestion(packet, now);
  if (!isAwaited(packet) || (latest.state !== 'open' && latest.state !== 'timed_out')) return undefined;
  const { question, asked } = latest;
  if (!asked.remind_at || now.getTime() < Date.parse(asked.remind_at)) return undefined;
  const hitl = hitlOf({ question, asked: { ...asked, remind_at: null }, answer: null });
  const reminded: P = { ...touched(packet, now), hitl };
  if (latest.state === 'timed_out') return { packet: reminded, events: [], searchable: false };
  const details = { question_id: asked.question_id, responder: question.responder ?? null };
  const event = { event_type: 'hitl_reminded', type: 'hitl.reminder', actor: 'system:sweeper', details, notifies: 'reminded' } as const;
  return { packet: reminded, events: [event], searchable: false };
}
