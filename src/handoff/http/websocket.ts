import type { IncomingHttpHeaders } from 'node:http';

import { invalid, ServiceError, unavailable } from '../../kit/errors.ts';
import { parseJson } from '../../kit/http/json.ts';
import type { Mount } from '../../kit/http/mount.ts';
import type { OpenStream } from '../../kit/http/streams.ts';
import { bodyValidator } from '../../kit/http/validate.ts';
import { type SocketFeed, webSocket } from '../../kit/http/websocket.ts';
import { SlidingWindow } from '../../kit/window.ts';
import type { LiveEvent } from '../live/event.ts';
import type { Listener, Start } from '../live/hub.ts';
import type { HandoffRoute } from '../model/route.ts';
import { SocketRequest, streamRoutes } from '../model/stream.ts';
import { maxChannels, parseChannels } from '../rules/channels.ts';
import type { Caller } from '../service/authentication.ts';
import { greeting, isOn, keyOf, type Listening, lastEventIdOf, listenerOf } from './streams.ts';

/** How many messages a client may send in any ten seconds, protocol pings included. */
const maxMessages = 120;
const windowMs = 10_000;

/** How many stretches of what was sent are remembered, so that resuming repeats none of it. */
const maxStretches = 50;

const check = bodyValidator(SocketRequest, { nullIsAbsent: true });

/** What a connection listens to: null is everything. */
type Subscription = ReadonlySet<string> | null;

/** Positions of which a connection was told all that its subscription had then. */
interface Stretch {
  readonly after: number;
  readonly upTo: number;
  readonly subscription: Subscription;
}

/** `GET /ws`: the tenant's events over WebSocket. */
export function mountWebSocket(mount: Mount<Caller, HandoffRoute>, listening: Listening, corsOrigins: readonly string[]): void {
  mount(streamRoutes.socket, async ({ query: { api_key, subscribe = [], last_event_id } }, { caller, headers }) => {
    const key = keyOf(headers, api_key);
    requireOrigin(headers, corsOrigins, key !== undefined);
    const channels = parseChannels(subscribe, 'subscribe');
    const { start, leave, connectionId } = await listening.begin(caller, lastEventIdOf(headers, last_event_id));
    return webSocket({
      streams: listening.streams,
      abandon: leave,
      feed(open, request, close) {
        const connection = new Connection({ listening, caller, open, close, requestId: request.id });
        const unwatch = listening.watch(key, open);
        connection.begin(connectionId, channels.length === 0 ? null : new Set(channels), start);
        return {
          heartbeat: (now) => message({ type: 'ping', timestamp: now.toISOString() }),
          onMessage: (text) => connection.take(text),
          onEnd() {
            leave();
            unwatch();
            connection.leave();
          },
        } satisfies SocketFeed;
      },
    });
  });
}

const message = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

interface ConnectionParts {
  listening: Listening;
  caller: Caller;
  open: OpenStream;
  close(code: number, reason: string): void;
  requestId: string;
}

/** A WebSocket client and what it listens to. */
class Connection {
  readonly #parts: ConnectionParts;
  readonly #messages = new SlidingWindow(windowMs);
  #subscription: Subscription = null;
  #listener!: Listener;
  /** Since when the present subscription is told. */
  #since = 0;
  #told: Stretch[] = [];
  #work = Promise.resolve();
  #isFlooded = false;

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
  }

  begin(connectionId: string, subscription: Subscription, start: Start): void {
    this.#subscription = subscription;
    this.#send({ type: 'connected', connection_id: connectionId, message: greeting(subscription?.size ?? 0) });
    this.#listenFrom(start);
  }

  /** Takes a message, or a protocol ping, which has no text. */
  take(text: string | undefined): void {
    const now = this.#parts.listening.clock().getTime();
    const isTooMany = !this.#messages.peek(now, maxMessages).allowed;
    if (this.#isFlooded) return;
    this.#isFlooded = isTooMany;
    this.#messages.add(now, maxMessages);
    // One after the other: what a message asks for may have to be looked up.
    if (isTooMany) this.#work = this.#work.then(() => this.#refuse());
    else if (text !== undefined) this.#work = this.#work.then(() => this.#answer(text));
  }

  #refuse(): void {
    const detail = `At most ${maxMessages} messages may come in ${windowMs / 1000} seconds.`;
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
      const refusal = error instanceof ServiceError ? error : unavailable(error);
      const echo = typeof id === 'string' || typeof id === 'number' ? { id } : {};
      this.#send({ ...this.#errorOf(refusal), ...echo });
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

  /** Tells what comes behind a position, but for what has been told. */
  #listenFrom({ position, reset }: Start): void {
    const { listening, caller, open } = this.#parts;
    if (reset !== undefined) this.#send({ type: 'reset', reason: reset });
    this.#since = position;
    const listener = listenerOf(open, position, {
      wants: (event) => this.#listener === listener && isIn(this.#subscription, event) && !this.#wasTold(event),
      write: (event) => event.frame,
    });
    this.#listener = listener;
    // Whoever can't be told what was missed must connect again.
    listening.hub.join(caller, listener).catch(() => open.end('gone'));
  }

  /** Closes the stretch that the present subscription was told. */
  #remember(): void {
    const upTo = this.#listener.position;
    if (upTo > this.#since) this.#told.push({ after: this.#since, upTo, subscription: this.#subscription });
    if (this.#told.length > maxStretches) this.#told.shift();
    this.#since = upTo;
  }

  #wasTold(event: LiveEvent): boolean {
    return this.#told.some(
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

/** The first `subscribe` narrows from everything; behind the last `unsubscribe` there is nothing. */
function changed(subscription: Subscription, action: 'subscribe' | 'unsubscribe', channels: readonly string[]): Subscription {
  if (action === 'unsubscribe') return subscription === null ? null : new Set([...subscription].filter((one) => !channels.includes(one)));
  const all = new Set([...(subscription ?? []), ...channels]);
  if (all.size > maxChannels) throw invalid('channels', `A stream listens to at most ${maxChannels} channels.`);
  return all;
}

/**
 * Refuses pages of origins that may not call the service, where the settings name some; and every foreign page that
 * brings no key, in development mode: a page on the internet must not read what runs on a developer's machine.
 */
function requireOrigin({ origin, host }: IncomingHttpHeaders, corsOrigins: readonly string[], hasKey: boolean): void {
  if (origin === undefined || corsOrigins.includes('*') || corsOrigins.includes(origin)) return;
  const isOwn = URL.parse(origin)?.host === host;
  if (!isOwn && (corsOrigins.length > 0 || !hasKey))
    throw new ServiceError('FORBIDDEN', 'Pages of this origin may not listen; SERVICE_CORS_ORIGINS names those that may.');
}
