import { connect } from 'node:net';

/** What came back over a connection of its own until it closed. */
export interface RawAnswer {
  /** 0 when the connection closed without an answer. */
  readonly status: number;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into bodies of every shape.
  readonly body: any;
}

/** How a sender misbehaves. */
export interface SendOptions {
  /** Ends the sending half behind the text, as a client does that breaks off. */
  end?: boolean;
  /** Is sent again and again, as fast as it is taken, until the other side closes. */
  flood?: string;
  /** Hangs up once an answer has come. */
  once?: boolean;
}

/** Sends bytes as they are to an `http://` address and gathers what comes back until the connection closes. */
export async function sendRaw(address: string, text: string, { end = false, flood, once = false }: SendOptions = {}): Promise<RawAnswer> {
  const { hostname, port } = new URL(address);
  return await new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    const more = () => {
      while (!socket.destroyed && socket.write(flood!));
    };
    socket.on('data', (chunk) => {
      chunks.push(chunk);
      if (once && isWhole(Buffer.concat(chunks).toString())) socket.destroy();
    });
    // A side that closes with bytes unread resets the connection; what it said before has been gathered.
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

/** Whether a text has an answer's head and as much of a body as that announces. */
function isWhole(text: string): boolean {
  const [head = '', body] = text.replace(interim, '').split('\r\n\r\n');
  return body !== undefined && Buffer.byteLength(body) >= Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0);
}

/** Interim answers, which come before the answer (RFC 9110, 15.2). */
const interim = /^(HTTP\/1\.1 1(?!01)\d\d.*?\r\n\r\n)+/s;

function read(text: string): RawAnswer {
  const [head = '', body = ''] = text.replace(interim, '').split('\r\n\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0);
  return { status, text, body: body.startsWith('{') ? JSON.parse(body) : undefined };
}
