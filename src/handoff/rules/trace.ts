import { readJson } from '../../kit/json.ts';
import type { Packet } from '../model/packet.ts';

/** The trace that is kept with a packet. */
export type KeptTrace = NonNullable<Packet['metadata']['trace']>;

/** Metadata of a request without what only the service sets: a trace and a schedule. */
export function withoutOwn<M extends object>(metadata: M): Omit<M, 'trace' | 'schedule'> {
  const { trace: _, schedule: __, ...others } = metadata as M & { trace?: unknown; schedule?: unknown };
  return others;
}

/** The trace at the beginning of the metadata in the text of a packet. Callers can write none of the fields before it. */
const tracePattern = /"metadata":\{"trace":(\{"traceparent":"[^"]*"(?:,"tracestate":"(?:[^"\\]|\\.)*")?\})/y;

/** The trace that is kept in the text of a packet; undefined without one. */
export function traceIn(text: string): KeptTrace | undefined {
  tracePattern.lastIndex = text.indexOf('"metadata":');
  const [, found] = tracePattern.exec(text) ?? [];
  return found === undefined ? undefined : (readJson(found) as KeptTrace);
}
