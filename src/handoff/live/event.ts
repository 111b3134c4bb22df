import { type Addressed, channelsOf, eventId } from '../rules/channels.ts';
import { isSeen, type PacketAgents, type Sight } from '../rules/sight.ts';

/** An event in a tenant's trail. */
export interface TrailEvent extends Addressed {
  readonly position: number;
  readonly type: string | null;
  /** The envelope as JSON text; null for an event that streams don't send, or that is past its retention. */
  readonly payload: string | null;
}

/** An event that streams send, serialized once for all of them. */
export class LiveEvent {
  readonly position: number;
  readonly type: string;
  /** The id with which a stream resumes after this event. */
  readonly id: string;
  /** The channels it belongs to. */
  readonly channels: readonly string[];
  readonly #payload: string;
  readonly #agents: PacketAgents;
  #sse: Buffer | undefined;
  #frame: Buffer | undefined;

  constructor(tenantId: string, event: TrailEvent & { readonly type: string; readonly payload: string }) {
    this.position = event.position;
    this.type = event.type;
    this.id = eventId(tenantId, event.position);
    this.channels = channelsOf(event);
    this.#payload = event.payload;
    this.#agents = event;
  }

  /** Whether its packet was seen after the event. */
  isSeenBy(sight: Sight | undefined): boolean {
    return isSeen(sight, this.#agents);
  }

  /** The characters of its payload. */
  get length(): number {
    return this.#payload.length;
  }

  /** The event in the format of server-sent events. */
  get sse(): Buffer {
    this.#sse ??= Buffer.from(`id: ${this.id}\nevent: ${this.type}\ndata: ${this.#payload}\n\n`);
    return this.#sse;
  }

  /** The event as a WebSocket message: the envelope with `event_id` at its end. */
  get frame(): Buffer {
    this.#frame ??= Buffer.from(`${this.#payload.slice(0, -1)},"event_id":"${this.id}"}`);
    return this.#frame;
  }
}

/** The event as streams send it; undefined for an event that they don't send. */
export function liveEvent(tenantId: string, event: TrailEvent): LiveEvent | undefined {
  const { type, payload } = event;
  return type === null || payload === null ? undefined : new LiveEvent(tenantId, { ...event, type, payload });
}
