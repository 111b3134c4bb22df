import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The most requests of a connection that wait for their answers. A connection that sends more is closed. */
export const maxUnanswered = 256;

/** The time in each turn of the event loop for pipelined requests of all connections, in milliseconds. */
const turnMs = 2;

/** A request whose connection is still waiting for the answer of an earlier one. */
interface Pipelined {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

const unanswered = Symbol('unanswered');

interface CountedSocket extends Socket {
  [unanswered]?: number;
}

/**
 * Bounds what pipelined requests take from other connections: a chunk of 64 KiB holds 2,500 requests, which Node would
 * hand over in one turn of the event loop. The first request of a connection is handled at once. Later ones are handled
 * in turns between connections, within a part of each turn of the event loop.
 */
export class Pipelining {
  readonly #handle: RequestListener;
  readonly #onClosed: () => void;
  /** The waiting requests of each connection; the connection whose turn is next comes first. */
  readonly #waiting = new Map<Socket, Pipelined[]>();
  #isScheduled = false;

  /** @param onClosed called when a connection is closed because too many of its requests are unanswered */
  constructor(handle: RequestListener, onClosed: () => void) {
    this.#handle = handle;
    this.#onClosed = onClosed;
  }

  /** Handles a request, at once or in its turn. */
  receive(request: IncomingMessage, response: ServerResponse): void {
    // Node assigns the connection to a response as soon as it is the first that is unanswered.
    if (response.socket !== null) this.#handle(request, response);
    else if (!request.socket.destroyed) this.#queue(request, response);
  }

  #queue(request: IncomingMessage, response: ServerResponse): void {
    const socket: CountedSocket = request.socket;
    const count = (socket[unanswered] ?? 1) + 1;
    if (count > maxUnanswered) {
      this.#onClosed();
      destroyCheaply(socket);
      return;
    }
    socket[unanswered] = count;
    response.once('close', () => {
      socket[unanswered] = (socket[unanswered] ?? 1) - 1;
    });
    const line = this.#waiting.get(socket);
    if (line === undefined) this.#waiting.set(socket, [{ request, response }]);
    else line.push({ request, response });
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.size === 0) return;
    this.#isScheduled = true;
    setImmediate(() => this.#takeTurn());
  }

  #takeTurn(): void {
    this.#isScheduled = false;
    const until = performance.now() + turnMs;
    for (const [socket, line] of this.#waiting) {
      this.#waiting.delete(socket);
      if (socket.destroyed) continue;
      const { request, response } = line.shift()!;
      if (line.length > 0) this.#waiting.set(socket, line);
      this.#handle(request, response);
      if (performance.now() >= until) break;
    }
    this.#schedule();
  }
}

/**
 * Destroys a connection with many unanswered requests. Node makes an error for each of them, and without their stacks
 * this takes a tenth of the time.
 */
function destroyCheaply(socket: Socket): void {
  const { stackTraceLimit } = Error;
  // Node's own listener stands between these two.
  socket.prependOnceListener('close', () => {
    Error.stackTraceLimit = 0;
  });
  socket.once('close', () => {
    Error.stackTraceLimit = stackTraceLimit;
  });
  socket.destroy();
}
