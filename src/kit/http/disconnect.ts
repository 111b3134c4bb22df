import type { FastifyReply, FastifyRequest } from 'fastify';

/** The reason of aborted signals. It is shared, because creating one for each request would take 50 µs. */
const disconnected = new Error('The client has disconnected.');

/**
 * A signal that aborts when the connection closes. A client that ends its sending half may still read or may be gone; it
 * counts as connected, because only an interim response would show which, and some clients take that for the answer.
 */
export function signalOf({ raw: response }: FastifyReply): AbortSignal {
  const controller = new AbortController();
  const abort = () => {
    // A response that was sent closes as well. To abort then would dispatch an event for every request.
    if (!response.writableFinished) controller.abort(disconnected);
  };
  if (response.destroyed) abort();
  else response.once('close', abort);
  return controller.signal;
}

/** A signal that aborts when the connection closes or the client ends its sending half. */
export function endSignalOf({ raw: { socket } }: FastifyRequest, { raw: response }: FastifyReply): AbortSignal {
  const controller = new AbortController();
  const abort = () => {
    socket.off('end', abort);
    controller.abort(disconnected);
  };
  if (response.destroyed || socket.readableEnded) abort();
  else {
    socket.once('end', abort);
    response.once('close', abort);
  }
  return controller.signal;
}
