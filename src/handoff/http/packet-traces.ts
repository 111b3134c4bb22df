import { currentRequest } from '../../kit/current-request.ts';
import { readJson } from '../../kit/json.ts';
import { parseTraceparent } from '../../kit/trace-context.ts';
import type { Packet } from '../model/packet.ts';
import { traceIn } from '../rules/trace.ts';

/** Says that the request is about a packet that another trace led to. */
export function linkTo(packet: string): void {
  const span = currentRequest()?.span;
  const trace = span && parseTraceparent(traceIn(packet)?.traceparent);
  if (trace !== undefined) span!.link(trace);
}

/**
 * Links the request that answered a question to the trace of the packet, and records a span there from the question to the answer:
 * browsers of people bring no trace, and the time for which a packet waited for a person would be a gap in it.
 */
export function recordAnswer(packet: Packet | string): void {
  const span = currentRequest()?.span;
  if (span === undefined) return;
  const { metadata, hitl } = typeof packet === 'string' ? (readJson(packet) as Packet) : packet;
  const trace = parseTraceparent(metadata.trace?.traceparent);
  const from = hitl?.requested_at;
  if (trace === undefined || !from) return;
  span.link(trace);
  span.record(trace, { name: 'question', from: new Date(from) });
}
