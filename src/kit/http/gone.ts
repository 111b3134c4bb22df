import type { FastifyReply, FastifyRequest } from 'fastify';

/** Why a signal aborts. One for all: a reason of its own for each request would take 50 µs to make. */
const gone = new Error('The client is gone.');

/** How often a client that has ended its sending half is sent an interim answer, in milliseconds. */
const probeMs = 50;

/**
 * Aborts when the connection closes: behind the answer nobody listens any more. A client that ends its sending half may
 * still read, or may be gone; an interim answer, which every client of HTTP/1.1 passes over (RFC 9110, 15.2), tells: the
 * system of one that is gone resets the connection, and the next one can't be written.
 */
export function signalOf({ raw: request }: FastifyRequest, { raw: response }: FastifyReply): AbortSignal {
  const controller = new AbortController();
  if (response.destroyed) {
    controller.abort(gone);
    return controller.signal;
  }
  const { socket } = request;
  let timer: NodeJS.Timeout | undefined;
  const probe = () => {
    if (!response.headersSent) response.writeProcessing();
  };
  const halfClosed = () => {
    if (request.httpVersion !== '1.1') return;
    probe();
    timer = setInterval(probe, probeMs);
  };
  if (socket.readableEnded) halfClosed();
  else socket.once('end', halfClosed);
  response.once('close', () => {
    clearInterval(timer);
    socket.off('end', halfClosed);
    controller.abort(gone);
  });
  return controller.signal;
}

/** Aborts when the connection closes, or the client says that it sends nothing more. */
export function endSignalOf(request: FastifyRequest, reply: FastifyReply): AbortSignal {
  const { socket } = request.raw;
  const ended = new AbortController();
  const end = () => ended.abort(gone);
  if (socket.readableEnded) end();
  socket.once('end', end);
  reply.raw.once('close', () => socket.off('end', end));
  return AbortSignal.any([ended.signal, signalOf(request, reply)]);
}
