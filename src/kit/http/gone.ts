import type { FastifyReply, FastifyRequest } from 'fastify';

/** The reason of aborted signals. It is shared, because creating one for each request would take 50 µs. */
const gone = new Error('The client is gone.');

/** The interval of interim responses to a client that has ended its sending half, in milliseconds. */
const probeMs = 50;

/**
 * A signal that aborts when the connection closes. A client that ends its sending half may still read or may be gone.
 * Interim responses, which HTTP/1.1 clients ignore (RFC 9110, 15.2), show which: the operating system of a client that
 * is gone resets the connection, and the next write fails.
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

/** A signal that aborts when the connection closes or the client ends its sending half. */
export function endSignalOf(request: FastifyRequest, reply: FastifyReply): AbortSignal {
  const { socket } = request.raw;
  const ended = new AbortController();
  const end = () => ended.abort(gone);
  if (socket.readableEnded) end();
  socket.once('end', end);
  reply.raw.once('close', () => socket.off('end', end));
  return AbortSignal.any([ended.signal, signalOf(request, reply)]);
}
