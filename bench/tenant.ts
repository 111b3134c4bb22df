import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

import { type A2aOptions, a2aRequest } from '../test/support/a2a.ts';
import { jsonHeaders } from './run.ts';

const agent = (id: string) => ({ id, name: id, framework: 'bench' });
const agents = { source_agent: agent('a'), target_agent: agent('b') };

/** About the largest packet of the tier, in characters. */
const largeLength = 900_000;

/** A context whose parts any face shows. */
export const largeContext = () => ({ summary: 'large', conversation_state: [{ role: 'user', content: 'y'.repeat(largeLength) }] });

/** A create request with this context. */
export const packetWith = (context: object) => ({ metadata: agents, context });

interface Answer {
  readonly id: string;
  readonly key: string;
  readonly url: string;
}

interface SendOptions {
  readonly method?: string;
  readonly headers?: object;
}

/** The requests of one tenant, outside of what is measured. */
export class Tenant {
  readonly url: string;
  readonly key: string;

  /** @param key the admin key of the default tenant, unless another one is given */
  constructor(url: string, key = jsonHeaders['x-api-key']) {
    this.url = url;
    this.key = key;
  }

  /** Makes a tenant of the largest tier. */
  static async create(url: string): Promise<Tenant> {
    const admin = new Tenant(url);
    const { id } = await admin.post('/api/v1/tenants', { name: 'Other', tier: 'business' });
    const { key } = await admin.post('/api/v1/keys', { name: 'other', tenant_id: id });
    return new Tenant(url, key);
  }

  /** @throws Error unless the answer is 2xx */
  async post(path: string, body: unknown, options: SendOptions = {}): Promise<Answer> {
    return JSON.parse((await this.send(path, body, options)).toString()) as Answer;
  }

  /** The bytes that are answered, which cost the client less than to read them. @throws Error unless the answer is 2xx */
  async send(path: string, body: unknown, { method = 'POST', headers = {} }: SendOptions = {}): Promise<Buffer> {
    const answer = await fetch(`${this.url}${path}`, {
      method,
      headers: { 'content-type': 'application/json', 'x-api-key': this.key, ...headers },
      body: JSON.stringify(body),
    });
    const bytes = Buffer.from(await answer.arrayBuffer());
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${bytes.toString().slice(0, 300)}`);
    return bytes;
  }

  /** The text that is answered. @throws Error unless the answer is 200 */
  async get(path: string): Promise<string> {
    const answer = await fetch(`${this.url}${path}`, { headers: { 'x-api-key': this.key } });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${text.slice(0, 300)}`);
    return text;
  }

  /** The paths of its 200 newest packets. */
  async packetPaths(): Promise<string[]> {
    const { packets } = JSON.parse(await this.get('/api/v1/packets?limit=200')) as { packets: { id: string }[] };
    return packets.map(({ id }) => `/api/v1/packets/${id}`);
  }

  create(fields: object = {}): Promise<Answer> {
    return this.post('/api/v1/packets', { metadata: agents, context: { summary: 'small' }, ...fields });
  }

  /** Makes a chain of large packets; returns the id of the last. */
  async chain(length: number): Promise<string> {
    let { id } = await this.create({ context: largeContext() });
    for (let depth = 1; depth < length; depth += 1) ({ id } = await this.create({ parent_packet_id: id, context: largeContext() }));
    return id;
  }

  patch(id: string, body: unknown) {
    return this.post(`/api/v1/packets/${id}`, body, { method: 'PATCH' });
  }

  a2a(method: string, params: unknown, options?: A2aOptions) {
    const { headers, body } = a2aRequest(method, params, options);
    return this.post('/a2a', body, { headers });
  }

  /** Opens streams and resolves when all have begun. Reads them, or nothing after their beginning. */
  async streams(path: string, requests: readonly { headers: object; body: object }[], reads: boolean): Promise<Socket[]> {
    const { hostname, port, host } = new URL(this.url);
    const sockets = requests.map(({ headers, body }) => {
      const socket = connect(Number(port), hostname);
      socket.on('error', () => undefined);
      const text = JSON.stringify(body);
      const lines = Object.entries({ host, 'x-api-key': this.key, ...headers, 'content-length': Buffer.byteLength(text) });
      socket.write(`POST ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${text}`);
      return socket;
    });
    await Promise.all(
      sockets.map(async (socket) => {
        const [head] = (await once(socket, 'data')) as [Buffer];
        if (!head.toString('latin1').startsWith('HTTP/1.1 200')) throw new Error(`${path}: ${head.toString().slice(0, 300)}`);
        if (reads) socket.resume();
        else socket.pause();
      }),
    );
    return sockets;
  }
}
