import type { Clock } from '../../kit/clock.ts';
import { invalid } from '../../kit/errors.ts';
import { readJson } from '../../kit/json.ts';
import type { Turns } from '../../kit/turns.ts';
import { type From, maxOccurrenceBrief, type Occurrence, type OccurrenceName, type Polled, type Subscribed } from '../model/occurrence.ts';
import type { PacketSummary } from '../model/packet.ts';
import { isSubscribed, occurrenceData, stillHolds, type TrailEvent } from '../rules/occurrence.ts';
import { acts, requireRight } from '../rules/rights.ts';
import type { Store } from '../store/store.ts';
import type { TrailEntry } from '../store/trail-entries.ts';
import type { Caller } from './authentication.ts';
import type { BriefService } from './brief.ts';
import type { PacketViews } from './packet-views.ts';

/** How many entries of the trail are read at once. */
export const readAtOnce = 200;

/** How many entries one poll looks through at most. */
const readForPoll = 1000;

/** The events of a poll, unless it says how many. */
const defaultEvents = 25;

interface OccurrenceDependencies {
  store: Pick<Store, 'whole'>;
  views: PacketViews;
  brief: BriefService;
  clock: Clock;
  turns: Turns;
}

/** Where the events of a subscription begin: after this position, and whether older ones are missing. */
export interface Start {
  readonly position: number;
  readonly truncated: boolean;
}

/** An entry of the trail as the rules on events need it; undefined where it has no packet any more. */
export function trailEventOf({ event_type, details, payload }: TrailEntry): TrailEvent | undefined {
  const packet = payload === null ? null : readJson<{ data: PacketSummary | null }>(payload).data;
  return packet === null ? undefined : { event_type, packet, details: details === null ? {} : readJson<TrailEvent['details']>(details) };
}

/** Reads the trail as MCP Events: what a client gets that asks, and what is sent to a client that subscribed. */
export function createOccurrenceService({ store, views, brief, clock, turns }: OccurrenceDependencies) {
  /** The event of an entry, as the caller may see it now; undefined when it may not, or when it is not so any more. */
  async function told(caller: Caller, name: OccurrenceName, { id, packet_id, timestamp }: TrailEntry): Promise<Occurrence | undefined> {
    const view = await views.of(caller, packet_id);
    if (view === undefined || !stillHolds(name, view.packet, clock())) return undefined;
    const { text } = await brief(caller, packet_id, { maxChars: maxOccurrenceBrief, depth: 0, format: 'markdown' });
    return { eventId: id, name, timestamp, data: occurrenceData(name, view.packet, text, clock()) };
  }

  /** The position from which events are sent. @throws ServiceError 400 for a cursor that is none */
  async function startOf(tenant: number, { cursor, maxAgeMs }: From): Promise<Start> {
    const { trail } = store.whole(tenant);
    const { last, removed } = await trail.range();
    const now = { position: last, truncated: false };
    if (cursor === null) return now;
    if (!/^\d{1,15}$/.test(cursor)) throw invalid('cursor', 'cursor must be one that this service gave.');
    const position = Number(cursor);
    // A cursor ahead of the trail is from before a restored backup.
    if (position > last) return { ...now, truncated: true };
    const tooOld = maxAgeMs === undefined ? 0 : await trail.positionBefore(new Date(Math.max(0, clock().getTime() - maxAgeMs)));
    const first = Math.max(position, removed, tooOld);
    return { position: first, truncated: first > position };
  }

  return {
    startOf,

    /** The events that a caller subscribes to, after the cursor. Nothing is kept of it. @throws ServiceError 400, 403 */
    async poll(
      caller: Caller,
      subscribed: Subscribed,
      { maxEvents = defaultEvents, ...from }: From & { maxEvents?: number | undefined },
    ): Promise<Polled> {
      requireRight(caller, acts.pollEvents);
      const { trail } = store.whole(caller.tenant_number);
      const start = await startOf(caller.tenant_number, from);
      const { last } = await trail.range();
      const events: Occurrence[] = [];
      let { position } = start;
      const { truncated } = start;
      const end = Math.min(last, position + readForPoll);
      while (position < end) {
        const upTo = Math.min(end, position + readAtOnce);
        const entries = await trail.packetEvents(position, upTo);
        await turns.next(caller.tenant_number);
        const wanted = entries.filter((entry) => {
          const event = trailEventOf(entry);
          return event !== undefined && isSubscribed(subscribed, event);
        });
        for (const entry of wanted) {
          await turns.next(caller.tenant_number);
          const occurrence = await told(caller, subscribed.name, entry);
          if (occurrence === undefined) continue;
          if (events.length === maxEvents) return { events, cursor: String(entry.position - 1), truncated, hasMore: true };
          events.push(occurrence);
        }
        position = upTo;
      }
      return { events, cursor: String(position), truncated, hasMore: position < last };
    },

    /** The event of a delivery, as the caller for whom it is sent may see it now; undefined when there is nothing to send. */
    async ofDelivery(
      caller: Caller,
      subscribed: Subscribed,
      { packet_id, event_id }: { readonly packet_id: string | null; readonly event_id: string },
    ): Promise<(Occurrence & { readonly position: number }) | undefined> {
      if (packet_id === null) return undefined;
      const entry = await store.whole(caller.tenant_number).trail.packetEvent(packet_id, event_id);
      const occurrence = entry && (await told(caller, subscribed.name, entry));
      return occurrence && { ...occurrence, position: entry.position };
    },
  };
}

export type OccurrenceService = ReturnType<typeof createOccurrenceService>;
