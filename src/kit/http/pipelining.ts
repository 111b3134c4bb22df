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
 * @param onClosed called when a connection is closed because too many of its requests are unanswered
 */
export function boundPipelining(handle: RequestListener, onClosed: () => void): RequestListener {
  // The connections with waiting requests, in the order of their turns.
  const waiting = new Map<Socket, Pipelined[]>();
  let isScheduled = false;

  function takeTurn(): void {
    const until = performance.now() + turnMs;
    for (const [socket, line] of waiting) {
      waiting.delete(socket);
      if (socket.destroyed) continue;
      const { request, response } = line.shift()!;
      if (line.length > 0) waiting.set(socket, line);
      handle(request, response);
      if (performance.now() >= until) break;
    }
    isScheduled = waiting.size > 0;
    if (isScheduled) setImmediate(takeTurn);
  }

  return (request, response) => {
    // Node assigns the connection to a response as soon as it is the first that is unanswered.
    if (response.socket !== null) return handle(request, response);
    const socket: CountedSocket = request.socket;
    if (socket.destroyed) return;
    const count = (socket[unanswered] ?? 1) + 1;
    if (count > maxUnanswered) {
      onClosed();
      destroyCheaply(socket);
      return;
    }
    socket[unanswered] = count;
    response.once('close', () => {
      socket[unanswered] = (socket[unanswered] ?? 1) - 1;
    });
    const line = waiting.get(socket);
    if (line === undefined) waiting.set(socket, [{ request, response }]);
    else line.push({ request, response });
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(takeTurn);
  };
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
