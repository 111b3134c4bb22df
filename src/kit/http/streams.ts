import type { FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { pauseFor } from '../awaitable.ts';
import type { Clock } from '../clock.ts';
import { describeCause, ServiceError, toServiceError } from '../errors.ts';
import { MemoryBudget, SharedBuffers } from '../memory-budget.ts';
import { traceFields } from '../trace-context.ts';
import { endSpan } from './spans.ts';

/** Why a stream ended. */
export type StreamEnd =
  /** The client disconnected. */
  | 'gone'
  /** The service is stopping. */
  | 'shutdown'
  /** The API key of the stream is no longer valid. */
  | 'revoked'
  /** Too many bytes wait for the client, or it reads nothing. */
  | 'slow'
  /** The client did not answer a ping. */
  | 'no_pong'
  /** The client sent an invalid message. */
  | 'refused'
  /** The service failed to read or send its events; the log has the cause. */
  | 'failed'
  /** There are no more events, because their subject has ended. */
  | 'done';

/** The most bytes that may wait for a client, exceeded by at most one message. */
const maxWaitingBytes = 1024 * 1024;

/** A message of at least so many bytes may wait for a client although nothing waited before. */
const largeBytes = 16 * 1024;

/** How often every stream is sent a heartbeat, in milliseconds. */
const heartbeatMs = 30_000;

/** A connection that stays open and is sent messages as they occur. */
export interface Stream {
  readonly protocol: 'sse' | 'websocket';
  /** Bytes that wait for the client. */
  waitingBytes(): number;
  /** Bytes that were sent to the client. */
  sentBytes(): number;
  /** Pings the client if the protocol has pings; false if the last ping was not answered. */
  probe?(): boolean;
  /** Sends a serialized message. `done` is called once it has been sent or can no longer be sent. */
  write(message: Buffer, done?: () => void): void;
  /** Tells the client the reason and ends the connection. */
  end(why: StreamEnd): void;
}

/** The source of an open stream. */
export interface StreamFeed {
  /** Returns the heartbeat message. */
  heartbeat(now: Date): Buffer;
  /** Called once, when the stream has ended. */
  onEnd(why: StreamEnd): void;
}

/** An open stream, with a limit on waiting bytes and heartbeats. It ends with the service. */
export class OpenStream {
  readonly #stream: Stream;
  readonly #finished: (why: StreamEnd) => void;
  /** Logs an error under the request's id and returns what the client is told. */
  readonly refusalOf: (error: unknown) => ServiceError;
  readonly #waiting: WaitingMessages;
  /** The messages that wait for the client, oldest first. */
  readonly #held: { readonly message: Buffer; readonly done: () => void }[] = [];
  #end: StreamEnd | undefined;

  constructor(stream: Stream, waiting: WaitingMessages, finished: (why: StreamEnd) => void, refusalOf: (error: unknown) => ServiceError) {
    this.#stream = stream;
    this.#waiting = waiting;
    this.#finished = finished;
    this.refusalOf = refusalOf;
  }

  get isOpen(): boolean {
    return this.#end === undefined;
  }

  /** Sends a message. Ends the stream instead if too many bytes wait for the client. With `done`, the caller bounds what waits. */
  send(message: Buffer, done?: () => void): void {
    const waitingBytes = this.isOpen ? this.#stream.waitingBytes() : 0;
    if (waitingBytes > maxWaitingBytes) this.end('slow');
    if (!this.isOpen) done?.();
    else if (done !== undefined || (waitingBytes === 0 && message.length < largeBytes)) this.#stream.write(message, done);
    else this.#hold(message);
  }

  /** Sends a message in parts, of which other streams may share some. Ends the stream instead if too many bytes wait for the client. */
  sendParts(parts: readonly Buffer[]): void {
    if (this.isOpen && this.#stream.waitingBytes() > maxWaitingBytes) this.end('slow');
    for (const part of parts) if (this.isOpen) this.#hold(part);
  }

  /** Sends a message that counts as waiting until it is written; resolves then, or when the stream has ended, with whether it is open. */
  sent(message: Buffer): Promise<boolean> {
    return new Promise((resolve) => {
      const done = () => resolve(this.isOpen);
      if (this.isOpen) this.#hold(message, done);
      else done();
    });
  }

  /** Sends a message that counts as waiting until it is written. */
  #hold(message: Buffer, done: () => void = () => undefined): void {
    const { memory, owner, endSlowest } = this.#waiting;
    memory.add(owner, message);
    this.#held.push({ message, done });
    this.#stream.write(message, () => {
      // Messages are written in order; an ended stream has let go of all.
      const first = this.#held.shift();
      if (first === undefined) return;
      memory.release(first.message);
      first.done();
    });
    const over = memory.budget.exceededBy(owner);
    if (over !== undefined) endSlowest(over);
  }

  /** The bytes of its live messages that wait for the client. */
  heldBytes(): number {
    return this.#held.reduce((total, { message }) => total + message.length, 0);
  }

  /** Ends the stream because of an error, which is logged under the request's id. */
  fail(error: unknown): void {
    if (!this.isOpen) return;
    this.refusalOf(error);
    this.end('failed');
  }

  /** Ends the stream. Further calls do nothing. */
  end(why: StreamEnd): void {
    if (this.#end !== undefined) return;
    this.#end = why;
    for (const { message, done } of this.#held.splice(0)) {
      this.#waiting.memory.release(message);
      done();
    }
    this.#stream.end(why);
    this.#finished(why);
  }
}

/** The memory for messages that wait, and the owner of a stream's messages. */
interface WaitingMessages {
  readonly memory: SharedBuffers;
  readonly owner: string;
  /** Ends streams of an owner, those with the most waiting first, until its messages take no more than they may. */
  readonly endSlowest: (owner: string) => void;
}

interface Entry {
  readonly owner: string;
  readonly open: OpenStream;
  readonly stream: Stream;
  readonly feed: StreamFeed;
  nextHeartbeatAt: number;
  /** The bytes sent up to the last heartbeat. */
  sentBytes: number;
}

/** The time over which many streams are ended, in milliseconds, so that their clients do not all reconnect at once. */
const closeWithinMs = 2_000;
const closeSteps = 40;

/** What the live messages that wait for clients may take together by default, in bytes; those of one owner may take a quarter of it. */
const defaultWaitingBytes = 64 * 1024 * 1024;

interface StreamsDependencies {
  clock: Clock;
  logger: Logger;
  /** Called for every stream that ended, for metrics. */
  onEnded: (method: string, route: string, status: number) => void;
  memory?: SharedBuffers;
  isUnavailable: (error: unknown) => boolean;
}

/** All open streams of a service. */
export class Streams {
  readonly #parts: StreamsDependencies;
  /** The memory for live messages that wait for clients. Streams share a message, so it counts once. */
  readonly #memory: SharedBuffers;
  readonly #entries = new Set<Entry>();
  readonly #counts = { sse: 0, websocket: 0 };
  #isClosing = false;

  constructor(parts: StreamsDependencies) {
    this.#parts = parts;
    this.#memory = parts.memory ?? new SharedBuffers(new MemoryBudget(defaultWaitingBytes));
  }

  /** Opens a stream for a request, which is logged when the stream ends. */
  open(stream: Stream, request: FastifyRequest, feed: (open: OpenStream) => StreamFeed): OpenStream {
    const { clock, logger, onEnded, isUnavailable } = this.#parts;
    const { id, method, info } = request;
    const { route = 'unknown', caller, callerField } = info;
    const openedAt = clock().getTime();
    const status = stream.protocol === 'sse' ? 200 : 101;
    let entry: Entry | undefined;
    let ended: StreamEnd | undefined;
    const finish = (why: StreamEnd) => {
      ended = why;
      // A feed may end the stream before it is registered.
      if (entry === undefined || !this.#entries.delete(entry)) return;
      this.#counts[stream.protocol] -= 1;
      const seconds = (clock().getTime() - openedAt) / 1000;
      endSpan(request, status);
      const fields = { request_id: id, [callerField]: caller, method, route, status, seconds, end: why, ...traceFields(info.trace) };
      logger.info(fields, 'stream');
      onEnded(method, route, status);
      entry.feed.onEnd(why);
    };
    const refusalOf = (error: unknown) => {
      const refusal = toServiceError(error, isUnavailable);
      if (refusal.status >= 500) logger.error({ request_id: id, route, err: describeCause(refusal.cause ?? error) }, 'stream failed');
      return refusal;
    };
    const owner = caller ?? '';
    const waiting = { memory: this.#memory, owner, endSlowest: (of: string) => this.#endSlowest(of) };
    const open = new OpenStream(stream, waiting, finish, refusalOf);
    entry = { owner, open, stream, feed: feed(open), nextHeartbeatAt: openedAt + heartbeatMs, sentBytes: -1 };
    this.#entries.add(entry);
    this.#counts[stream.protocol] += 1;
    if (ended !== undefined) finish(ended);
    else if (this.#isClosing) open.end('shutdown');
    return open;
  }

  /** Sends the heartbeats that are due. */
  sendHeartbeats(): void {
    const now = this.#parts.clock();
    for (const entry of this.#entries) {
      // After the clock was set back, the next heartbeat is due at the latest one interval from now.
      entry.nextHeartbeatAt = Math.min(entry.nextHeartbeatAt, now.getTime() + heartbeatMs);
      if (now.getTime() < entry.nextHeartbeatAt) continue;
      entry.nextHeartbeatAt += heartbeatMs * Math.ceil((now.getTime() - entry.nextHeartbeatAt + 1) / heartbeatMs);
      const sentBytes = entry.stream.sentBytes();
      const standsStill = entry.stream.waitingBytes() > 0 && sentBytes === entry.sentBytes;
      entry.sentBytes = sentBytes;
      if (standsStill) entry.open.end('slow');
      else if (entry.stream.probe?.() === false) entry.open.end('no_pong');
      else entry.open.send(entry.feed.heartbeat(now));
    }
  }

  /** The number of open streams of a protocol. */
  count(protocol: Stream['protocol']): number {
    return this.#counts[protocol];
  }

  /** @throws ServiceError 503 if streams are closing */
  requireOpen(): void {
    if (this.#isClosing) throw stopping();
  }

  /** Ends all streams, spread over two seconds if they are many, and accepts no new ones. */
  async close(): Promise<void> {
    this.#isClosing = true;
    const all = [...this.#entries];
    const step = Math.max(100, Math.ceil(all.length / closeSteps));
    for (let from = 0; from < all.length; from += step) {
      if (from > 0) await pauseFor(closeWithinMs / closeSteps);
      for (const { open } of all.slice(from, from + step)) open.end('shutdown');
    }
  }

  #endSlowest(owner: string): void {
    const own = [...this.#entries].filter((entry) => entry.owner === owner).map(({ open }) => ({ open, bytes: open.heldBytes() }));
    for (const { open } of own.toSorted((one, other) => other.bytes - one.bytes)) {
      open.end('slow');
      if (this.#memory.budget.exceededBy(owner) !== owner) return;
    }
  }
}

const stopping = () =>
  new ServiceError('SERVICE_UNAVAILABLE', 'This instance of the service is stopping. Connect again.', { headers: { 'Retry-After': '1' } });
