import { type Client, createClient } from '../../kit/client.ts';
import { type ConnectionOptions, createConnection } from '../../kit/connection.ts';
import type { routes } from '../model/api.ts';
import type { PacketSummary } from '../model/packet.ts';
import { operations } from './operations.ts';

export interface HandoffClientOptions extends Omit<ConnectionOptions, 'headers'> {
  /** Where the service is, with or without `/api/v1`: `http://localhost:8080`. */
  readonly baseUrl: string;
  /** The API key; only public operations are answered without one. */
  readonly apiKey?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An event of the stream: what happened to a packet, and its summary as it was then. */
export interface StreamEvent {
  /** Where the stream goes on: `events({ lastEventId })`. */
  readonly event_id: string | undefined;
  /** `packet.created` for example. */
  readonly type: string;
  readonly packet_id: string;
  /** Null for a packet that was removed for good. */
  readonly data: PacketSummary | null;
  readonly timestamp: string;
}

/** What was missed can't be told any more: from here on the events are the latest. */
export interface StreamReset {
  readonly event_id: string | undefined;
  readonly type: 'reset';
  readonly reason: string;
}

export interface EventsOptions {
  /** Channels: `status:<status>`, `packet:<id>`, `agent:<id>`; all events of the tenant when left out. */
  readonly subscribe?: readonly string[];
  /** The `event_id` of the last event seen: what came after it is told first. */
  readonly lastEventId?: string | undefined;
  /** Ends the stream. */
  readonly signal?: AbortSignal | undefined;
}

/** One method for each route, and the stream of events. */
export type HandoffClient = Client<typeof routes> & {
  /**
   * Events as they happen. The stream takes itself up again where it broke off, and misses and repeats nothing, unless it
   * says so by a `reset`. Rejects with ApiError when the service refuses it, and with the signal's reason when that ends it.
   */
  events(options?: EventsOptions): AsyncGenerator<StreamEvent | StreamReset, void, undefined>;
};

/** A client of the handoff service: `await createHandoffClient({ baseUrl, apiKey }).listPackets()`. */
export function createHandoffClient({ baseUrl, apiKey, headers, ...options }: HandoffClientOptions): HandoffClient {
  const key = apiKey === undefined ? {} : { 'x-api-key': headerValue(apiKey) };
  const connection = createConnection({ ...options, baseUrl: rootOf(baseUrl), headers: { ...key, ...headers } });
  return {
    ...createClient<typeof routes>(operations, connection),
    async *events({ subscribe, ...rest }: EventsOptions = {}) {
      for await (const { id, type, data } of connection.stream({ path: '/events', query: { subscribe }, ...rest })) {
        if (type !== 'connected' && type !== 'ping') yield { ...JSON.parse(data), type, event_id: id };
      }
    },
  };
}

/** The address without the API's prefix, which every operation's path begins with by itself. */
function rootOf(baseUrl: string): string {
  return baseUrl.replace(/\/+$/, '').replace(/\/api\/v1$/, '');
}

/** @throws TypeError that does not quote the key, where a header can't carry it */
function headerValue(key: string): string {
  if (!/^[\x21-\x7e]+$/.test(key)) throw new TypeError('The API key must be visible ASCII characters without spaces.');
  return key;
}
