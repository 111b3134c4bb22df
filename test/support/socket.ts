import { connect, type Socket } from 'node:net';

/** Everything that was received on a connection until it closed. */
interface RawAnswer {
  /** 0 when the connection closed without an answer. */
  readonly status: number;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into bodies of every shape.
  readonly body: any;
}

/** Resolves once the connection is closed. */
export const closed = (socket: Socket): Promise<void> =>
  new Promise((resolve) => void (socket.destroyed ? resolve() : socket.once('close', () => resolve())));

/** How the sender misbehaves. */
export interface SendOptions {
  /** Closes the sending side after the text, like a client that gives up. */
  end?: boolean;
  /** Text to send repeatedly, as fast as possible, until the other side closes. */
  flood?: string;
  /** Closes the connection after the first complete answer. */
  once?: boolean;
}

/** Sends raw bytes to an `http://` address and collects the answer until the connection closes. */
export async function sendRaw(address: string, text: string, { end = false, flood, once = false }: SendOptions = {}): Promise<RawAnswer> {
  const { hostname, port } = new URL(address);
  return await new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = connect({ host: hostname.replace(/[[\]]/g, ''), port: Number(port), allowHalfOpen: true });
    const more = () => {
      while (!socket.destroyed && socket.write(flood!));
    };
    socket.on('data', (chunk) => {
      chunks.push(chunk as Buffer);
      if (once && isWhole(Buffer.concat(chunks).toString())) socket.destroy();
    });
    // A peer that closes with unread bytes resets the connection; its answer has already been collected.
    socket.on('error', () => undefined);
    socket.on('end', () => socket.end());
    socket.on('close', () => resolve(read(Buffer.concat(chunks).toString())));
    socket.on('connect', () => {
      socket.write(text, 'latin1');
      if (end) socket.end();
      if (flood === undefined) return;
      socket.on('drain', more);
      more();
    });
  });
}

/** Whether a text is a complete answer, with as much body as its headers announce. */
function isWhole(text: string): boolean {
  const [head = '', body] = text.replace(interim, '').split('\r\n\r\n');
  return body !== undefined && Buffer.byteLength(body) >= Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0);
}

/** The answer to `Expect: 100-continue`. The services send no other interim response, which some clients take for the answer. */
const interim = /^HTTP\/1\.1 100 .*?\r\n\r\n/s;

function read(text: string): RawAnswer {
  const [head = '', body = ''] = text.replace(interim, '').split('\r\n\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0);
  return { status, text, body: body.startsWith('{') ? JSON.parse(body) : undefined };
}
