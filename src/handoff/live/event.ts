import { type Addressed, channelsOf, eventId } from '../rules/channels.ts';

/** An event of a tenant's trail. */
export interface TrailEvent extends Addressed {
  readonly position: number;
  readonly type: string | null;
  /** The envelope as JSON text; null where streams tell nothing, or nothing any more. */
  readonly payload: string | null;
}

/** An event that streams tell, written once for all of them. */
export class LiveEvent {
  readonly position: number;
  /** What the event is called. */
  readonly type: string;
  /** The id by which a stream resumes behind it. */
  readonly id: string;
  /** The channels it belongs to. */
  readonly channels: readonly string[];
  readonly #payload: string;
  #sse: Buffer | undefined;
  #frame: Buffer | undefined;

  constructor(tenantId: string, event: TrailEvent & { readonly type: string; readonly payload: string }) {
    this.position = event.position;
    this.type = event.type;
    this.id = eventId(tenantId, event.position);
    this.channels = channelsOf(event);
    this.#payload = event.payload;
  }

  /** The event as server-sent events carry it. */
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

/** The event as streams tell it; undefined where they tell nothing. */
export function liveEvent(tenantId: string, event: TrailEvent): LiveEvent | undefined {
  const { type, payload } = event;
  return type === null || payload === null ? undefined : new LiveEvent(tenantId, { ...event, type, payload });
}
