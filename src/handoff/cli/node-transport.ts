import type { IncomingMessage } from 'node:http';

import type { Transport } from '../../kit/transport.ts';

/**
 * A transport over Node's own HTTP client, for programs that start often: it takes 15 ms of processor time before the
 * first request, `fetch` takes 60.
 */
export const nodeTransport: Transport = ({ method, url, headers, body, signal }) => {
  // An import would read all exports of the module and thereby load the implementation of `fetch`.
  const { request } = process.getBuiltinModule(url.startsWith('https:') ? 'node:https' : 'node:http');
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method, headers }, (incoming) => {
      // A reader of the body gets the error itself. Without a reader the error does not matter.
      incoming.on('error', () => undefined);
      resolve({
        status: incoming.statusCode ?? 0,
        headers: headersOf(incoming),
        chunks: () => incoming.setEncoding('utf8'),
      });
    });
    // Node's own `signal` option throws if the response is complete but has not been read.
    const stop = () => {
      outgoing.destroy();
    };
    signal.addEventListener('abort', stop);
    outgoing.on('close', () => signal.removeEventListener('abort', stop));
    outgoing.on('error', reject);
    if (signal.aborted) stop();
    // Before a body that is a text, Node would send the headers as UTF-8 too, and they have been encoded already.
    outgoing.end(body === undefined ? undefined : Buffer.from(body));
  });
};

function headersOf({ headers }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}
