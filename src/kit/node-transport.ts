import type { IncomingMessage } from 'node:http';

import type { Transport } from './transport.ts';

/**
 * A transport by Node's own HTTP client, for programs that start often: `fetch` takes 60 ms of processor time before its
 * first request, this 15.
 */
export const nodeTransport: Transport = ({ method, url, headers, body, signal }) => {
  // An import would read every export of the module, and with them load what `fetch` needs.
  const { request } = process.getBuiltinModule(url.startsWith('https:') ? 'node:https' : 'node:http');
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method, headers }, (incoming) => {
      // Who reads the body gets its fault; one that comes when nobody reads any more concerns nobody.
      incoming.on('error', () => undefined);
      resolve({
        status: incoming.statusCode ?? 0,
        headers: headersOf(incoming),
        async text() {
          let text = '';
          for await (const chunk of incoming.setEncoding('utf8')) text += chunk;
          return text;
        },
        chunks: () => incoming.setEncoding('utf8'),
      });
    });
    // Node's own handling of a signal throws where an answer is complete and has not been read.
    const stop = () => void outgoing.destroy();
    signal.addEventListener('abort', stop);
    outgoing.on('close', () => signal.removeEventListener('abort', stop));
    outgoing.on('error', reject);
    if (signal.aborted) stop();
    outgoing.end(body);
  });
};

function headersOf({ headers }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}
