import type { IncomingHttpHeaders } from 'node:http';

import { invalid, ServiceError } from '../../kit/errors.ts';
import { parseJson } from '../../kit/http/json.ts';
import type { OpenStream } from '../../kit/http/streams.ts';
import { bodyValidator } from '../../kit/http/validate.ts';
import { SlidingWindow } from '../../kit/window.ts';
import type { LiveEvent } from '../live/event.ts';
import type { Listener, Start } from '../live/hub.ts';
import { SocketRequest } from '../model/stream.ts';
import { maxChannels, parseChannels } from '../rules/channels.ts';
import type { Caller } from '../service/authentication.ts';
import { handlersOf } from './handlers.ts';
import { keyOf, lastEventIdOf } from './headers.ts';
import { type SocketFeed, webSocket } from './socket-stream.ts';
import { greeting, isOn, type Listening, listenerOf } from './streams.ts';

/** The most messages that a client may send in any ten seconds, protocol pings and pongs included. */
const maxMessages = 120;
const windowMs = 10_000;

/** How many past subscriptions are remembered, so that resuming on the same connection sends no event twice. */
const maxSentRanges = 50;

const check = bodyValidator(SocketRequest, { nullIsAbsent: true });

/** The channels of a connection; null: all events. */
type Subscription = ReadonlySet<string> | null;

/** A range of positions for which a connection has been sent all events of its subscription at the time. */
interface SentRange {
  readonly after: number;
  readonly upTo: number;
  readonly subscription: Subscription;
}

/** The handler of `GET /ws`: the tenant's events over WebSocket. */
export const webSocketHandlers = (listening: Listening, corsOrigins: readonly string[]) =>
  handlersOf({
    socket: async ({ query: { api_key, subscribe = [], last_event_id } }, { caller, headers }) => {
      // Admission has compared the origin of a session's page with the public address, whatever Host a proxy sends.
      if (caller.kind !== 'session') requireOrigin(headers, corsOrigins, keyOf(headers, api_key) !== undefined);
      const channels = parseChannels(subscribe, 'subscribe');
      const { start, leave, connectionId } = await listening.begin(caller, lastEventIdOf(headers, last_event_id));
      return webSocket({
        streams: listening.streams,
        abandon: leave,
        feed(open, request, close) {
          const connection = new EventSocket({ listening, caller, open, close, requestId: request.id });
          const unwatch = listening.connections.watch(caller, open);
          connection.begin(connectionId, channels.length === 0 ? null : new Set(channels), start);
          return {
            heartbeat: (now) => message({ type: 'ping', timestamp: now.toISOString() }),
            onMessage: (text) => connection.receive(text),
            onEnd() {
              leave();
              unwatch();
              connection.leave();
            },
          } satisfies SocketFeed;
        },
      });
    },
  });

const message = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

interface EventSocketDependencies {
  listening: Listening;
  caller: Caller;
  open: OpenStream;
  close(code: number, reason: string): void;
  requestId: string;
}

/** A WebSocket connection and its subscription. */
class EventSocket {
  readonly #parts: EventSocketDependencies;
  readonly #messages = new SlidingWindow(windowMs);
  #subscription: Subscription = null;
  #listener!: Listener;
  /** The position from which the current subscription applies. */
  #since = 0;
  #sent: SentRange[] = [];
  #work = Promise.resolve();
  #isFlooded = false;

  constructor(parts: EventSocketDependencies) {
    this.#parts = parts;
  }

  begin(connectionId: string, subscription: Subscription, start: Start): void {
    this.#subscription = subscription;
    this.#send({ type: 'connected', connection_id: connectionId, message: greeting(subscription?.size ?? 0) });
    this.#listenFrom(start);
  }

  /** Handles a message, or a protocol ping or pong, which has no text. */
  receive(text: string | undefined): void {
    const now = this.#parts.listening.clock().getTime();
    const isTooMany = !this.#messages.peek(now, maxMessages).allowed;
    if (this.#isFlooded) return;
    this.#isFlooded = isTooMany;
    this.#messages.add(now, maxMessages);
    // One after the other, since handling a message may await a read of the database.
    if (isTooMany) this.#work = this.#work.then(() => this.#refuse());
    else if (text !== undefined) this.#work = this.#work.then(() => this.#answer(text));
  }

  #refuse(): void {
    const detail = `A client may send at most ${maxMessages} messages in ${windowMs / 1000} seconds.`;
    this.#send(this.#errorOf(new ServiceError('RATE_LIMITED', detail)));
    this.#parts.close(4100, 'Too many messages.');
  }

  leave(): void {
    const { listening, caller } = this.#parts;
    listening.hub.leave(caller, this.#listener);
  }

  async #answer(text: string): Promise<void> {
    if (!this.#parts.open.isOpen) return;
    let id: unknown;
    try {
      const request = parseJson(Buffer.from(text)) as SocketRequest;
      id = (request as Partial<SocketRequest> | null)?.id;
      check(request, text.length);
      await this.#carryOut(request);
    } catch (error) {
      const echo = typeof id === 'string' || typeof id === 'number' ? { id } : {};
      this.#send({ ...this.#errorOf(this.#parts.open.refusalOf(error)), ...echo });
    }
  }

  async #carryOut({ action, channel, channels: several = [], id, last_event_id }: SocketRequest): Promise<void> {
    const echo = id === undefined ? {} : { id };
    if (action === 'ping') {
      const { listening } = this.#parts;
      return this.#send({ type: 'pong', timestamp: listening.clock().toISOString(), ...echo });
    }
    const named = parseChannels(channel === undefined ? several : [channel, ...several], channel === undefined ? 'channels' : 'channel');
    if (named.length === 0) throw invalid('channel', `To ${action}, name a channel in channel, or several in channels.`);
    const { listening, caller } = this.#parts;
    const subscription = changed(this.#subscription, action, named);
    const start = last_event_id === undefined ? undefined : await listening.hub.startOf(caller, last_event_id);
    this.#remember();
    this.#subscription = subscription;
    const one = named.length === 1 ? named[0] : null;
    this.#send({ type: `${action}d`, channel: one, channels: [...(subscription ?? [])], ...echo });
    if (start === undefined) return;
    this.leave();
    this.#listenFrom(start);
  }

  /** Sends the events after a position, except those already sent. */
  #listenFrom({ position, reset }: Start): void {
    const { listening, caller, open } = this.#parts;
    if (reset !== undefined) this.#send({ type: 'reset', reason: reset });
    this.#since = position;
    const listener = listenerOf(open, position, {
      wants: (event) => this.#listener === listener && isIn(this.#subscription, event) && !this.#wasSent(event),
      write: (event) => event.frame,
    });
    this.#listener = listener;
    // Without the missed events the stream can't go on; the client reconnects and resumes.
    listening.hub.join(caller, listener).catch((error: unknown) => open.fail(error));
  }

  /** Remembers the range of positions that the current subscription has covered. */
  #remember(): void {
    const upTo = this.#listener.position;
    if (upTo > this.#since) this.#sent.push({ after: this.#since, upTo, subscription: this.#subscription });
    if (this.#sent.length > maxSentRanges) this.#sent.shift();
    this.#since = upTo;
  }

  #wasSent(event: LiveEvent): boolean {
    return this.#sent.some(
      ({ after, upTo, subscription }) => after < event.position && event.position <= upTo && isIn(subscription, event),
    );
  }

  #errorOf(error: ServiceError): Record<string, unknown> {
    return { type: 'error', ...error.body(), request_id: this.#parts.requestId };
  }

  #send(value: unknown): void {
    this.#parts.open.send(message(value));
  }
}

const isIn = (subscription: Subscription, event: LiveEvent): boolean => subscription === null || isOn(subscription, event);

/** The subscription after an action. The first `subscribe` narrows from all events; unsubscribing from the last channel leaves none. */
function changed(subscription: Subscription, action: 'subscribe' | 'unsubscribe', channels: readonly string[]): Subscription {
  if (action === 'unsubscribe') return subscription === null ? null : new Set([...subscription].filter((one) => !channels.includes(one)));
  const all = new Set([...(subscription ?? []), ...channels]);
  if (all.size > maxChannels) throw invalid('channels', `A stream can subscribe to at most ${maxChannels} channels.`);
  return all;
}

/**
 * Refuses pages of other origins: if SERVICE_CORS_ORIGINS is set, all that it does not list; otherwise those that send no
 * key, which development mode would accept. A page on the internet must not read from a service on a developer's machine.
 */
function requireOrigin({ origin, host }: IncomingHttpHeaders, corsOrigins: readonly string[], hasKey: boolean): void {
  if (origin === undefined || corsOrigins.includes('*') || corsOrigins.includes(origin)) return;
  const isOwn = URL.parse(origin)?.host === host;
  if (!isOwn && (corsOrigins.length > 0 || !hasKey))
    throw new ServiceError('FORBIDDEN', 'Pages of this origin may not connect; add the origin to SERVICE_CORS_ORIGINS to allow it.');
}
