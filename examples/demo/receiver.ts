import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A delivery with a valid signature. */
export interface Delivered {
  /** The delivery's id, the same for all attempts. */
  readonly id: string;
  readonly type: string;
  readonly packetId: string;
}

/** A receiver of webhooks on this machine. */
export interface Receiver {
  readonly url: string;
  /** The number of requests with an invalid signature. */
  readonly forged: () => number;
  readonly close: () => void;
}

/** Listens for deliveries and calls `onDelivered` for each one that is signed with the secret. */
export async function startReceiver(secret: string, onDelivered: (delivered: Delivered) => void): Promise<Receiver> {
  let forged = 0;

  /** Handles a request; returns the response status. */
  async function receive(request: IncomingMessage): Promise<number> {
    const body = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>));
    if (!isGenuine(secret, body, request.headers['x-service-signature'])) {
      forged += 1;
      return 401;
    }
    const { type, packet_id } = JSON.parse(body.toString()) as { type: string; packet_id: string };
    onDelivered({ id: String(request.headers['x-service-delivery']), type, packetId: packet_id });
    return 204;
  }

  const server = createServer((request, response) => {
    receive(request).then(
      (status) => response.writeHead(status).end(),
      () => response.destroy(),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    forged: () => forged,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Whether the header `X-SERVICE-Signature` signs the raw bytes of the body. */
function isGenuine(secret: string, body: Buffer, header: string | string[] = ''): boolean {
  const expected = Buffer.from(`sha256=${createHmac('sha256', secret).update(body).digest('hex')}`);
  const given = Buffer.from(String(header));
  return given.length === expected.length && timingSafeEqual(given, expected);
}
