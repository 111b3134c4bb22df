import { createHash } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createParser, type EventSourceMessage } from 'eventsource-parser';

import { createExample } from '../../src/handoff/model/examples.ts';
import { listen } from '../../test/support/listen.ts';
import { adminKey, type Instance } from './places.ts';

/** What was promised to callers, receivers and listeners, and every promise that was broken. */
export class Ledger {
  /** The packets that were created, by idempotency key. */
  readonly created = new Map<string, string>();
  /** The packets whose completion was answered. */
  readonly completed = new Set<string>();
  /** The newest claim of each packet. */
  readonly claims = new Map<string, Claim>();
  /** The delivery of each event, by the event's id. */
  readonly deliveries = new Map<string, string>();
  /** `type packet` of each event that the receiver accepted. */
  readonly delivered = new Set<string>();
  readonly listeners: Listener[] = [];
  /** Answered tests by chain. */
  readonly tests = new Map<string, Set<string>>();
  readonly counts = { requests: 0, retried: 0, claims: 0, posts: 0, reads: 0 };
  readonly broken: string[] = [];

  /** Notes a broken promise and prints it; further ones than a hundred are left out. */
  violation(sentence: string): void {
    if (this.broken.length === 100) return;
    this.broken.push(sentence);
    console.log(`BROKEN: ${sentence}`);
  }
}

interface Claim {
  readonly token: string;
  /** The lease lasts at least until then. */
  readonly until: number;
}

interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: bodies of every shape.
  readonly body: any;
  /** When the first attempt was sent. */
  readonly sentAt: number;
  readonly attempts: number;
}

interface Request {
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
}

/** Sends requests to instances in turn, until one answers with something other than 5xx. */
export function createCaller(instances: readonly Instance[], ledger: Ledger) {
  let turn = 0;
  return async function call(method: string, path: string, { body, headers = {} }: Request = {}): Promise<Answer> {
    const sentAt = Date.now();
    ledger.counts.requests += 1;
    for (let attempts = 1; ; attempts += 1) {
      const { url } = instances[turn++ % instances.length]!;
      const init = {
        method,
        headers: { 'x-api-key': adminKey, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(30_000),
      };
      try {
        const answer = await fetch(url + path, init);
        const text = await answer.text();
        if (answer.status === 500) ledger.violation(`${method} ${path} was answered 500: ${text}`);
        if (answer.status < 500)
          return { status: answer.status, body: text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : text, sentAt, attempts };
      } catch {
        // The instance is down, or ended before it answered.
      }
      ledger.counts.retried += 1;
      await sleep(100);
    }
  };
}

type Caller = ReturnType<typeof createCaller>;

const leaseSeconds = 15;

const { hitl: _, ...packetRequest } = createExample;

const chainRequest = {
  providers: [
    { name: 'first', model_id: 'openai/gpt-4o', priority: 0 },
    { name: 'second', model_id: 'anthropic/claude-sonnet-4-5', priority: 1 },
  ],
  fallback_rules: [
    { condition: 'rate_limit', action: 'retry', max_retries: 3 },
    { condition: 'timeout', action: 'failover' },
  ],
};

/** Creates packets until the signal aborts. Each has a key, and is requested until it is answered. */
export async function create(call: Caller, ledger: Ledger, name: string, over: AbortSignal): Promise<void> {
  for (let index = 0; !over.aborted; index += 1) {
    const key = `${name}-${index}`;
    const answer = await call('POST', '/api/v1/packets', { body: packetRequest, headers: { 'idempotency-key': key } });
    if (answer.status !== 201) ledger.violation(`a create was answered ${answer.status}: ${JSON.stringify(answer.body)}`);
    else ledger.created.set(key, answer.body.id);
    await sleep(50);
  }
}

/** Claims and completes packets until the signal aborts; abandons one in fifty, whose lease expires. */
export async function work(call: Caller, ledger: Ledger, name: string, over: AbortSignal): Promise<void> {
  for (let index = 0; !over.aborted; index += 1) {
    const body = { agent_id: name, target_agent: createExample.metadata.target_agent!.id, lease_seconds: leaseSeconds, wait_seconds: 1 };
    const claim = await call('POST', '/api/v1/packets/claim-next', { body, headers: { 'idempotency-key': `${name}-${index}` } });
    if (claim.status === 204) continue;
    if (claim.status !== 200) {
      ledger.violation(`a claim was answered ${claim.status}: ${JSON.stringify(claim.body)}`);
      continue;
    }
    const { id, lease } = claim.body;
    noteClaim(ledger, id, { token: lease.token, until: claim.sentAt + leaseSeconds * 1000 });
    if (index % 50 === 49) continue;
    await sleep(20);
    const request = { body: { status: 'completed' }, headers: { 'x-lease-token': lease.token } };
    const done = await call('PATCH', `/api/v1/packets/${id}`, request);
    if (done.status === 200) {
      if (ledger.completed.has(id)) ledger.violation(`${id} was completed twice`);
      ledger.completed.add(id);
    } else if (done.attempts === 1 && Date.now() < claim.sentAt + leaseSeconds * 1000) {
      ledger.violation(`a holder was refused with ${done.status}: ${JSON.stringify(done.body)}`);
    }
  }
}

function noteClaim(ledger: Ledger, id: string, claim: Claim): void {
  ledger.counts.claims += 1;
  const before = ledger.claims.get(id);
  if (before !== undefined && before.token !== claim.token) {
    if (ledger.completed.has(id)) ledger.violation(`${id} was claimed after its completion`);
    if (Date.now() < before.until) ledger.violation(`${id} was claimed twice at once`);
  }
  ledger.claims.set(id, claim);
}

/** Reads lists, searches and histories until the signal aborts. */
export async function read(call: Caller, ledger: Ledger, over: AbortSignal): Promise<void> {
  const paths = ['/packets?limit=50', '/packets/search?q=charged', '/audit?limit=50', '/packets?status=completed', '/agents'];
  for (let index = 0; !over.aborted; index += 1) {
    const newest = [...ledger.created.values()].at(-1);
    const own = newest === undefined ? [] : [`/packets/${newest}`, `/packets/${newest}/history`, `/packets/${newest}/brief`];
    const all = [...paths, ...own];
    const { status } = await call('GET', `/api/v1${all[index % all.length]}`);
    if (status !== 200) ledger.violation(`${all[index % all.length]} was answered ${status}`);
    ledger.counts.reads += 1;
    await sleep(50);
  }
}

/** Creates chains and tests them, until the signal aborts. */
export async function testChains(call: Caller, ledger: Ledger, name: string, over: AbortSignal): Promise<void> {
  for (let index = 0; !over.aborted; index += 1) {
    const chain = await call('POST', '/chains', { body: { ...chainRequest, name: `${name}-${index}` } });
    if (chain.status !== 201) {
      ledger.violation(`a chain was answered ${chain.status}: ${JSON.stringify(chain.body)}`);
      continue;
    }
    const { id } = chain.body;
    const tests = new Set<string>();
    ledger.tests.set(id, tests);
    for (let run = 0; run < 20 && !over.aborted; run += 1) {
      const { status, body } = await call('POST', `/chains/${id}/test`, { body: { prompt_count: 100 } });
      if (status !== 201) ledger.violation(`a test was answered ${status}: ${JSON.stringify(body)}`);
      else if (body.status === 'completed') tests.add(body.id);
      await sleep(100);
    }
  }
}

/** A listener that resumes after the last event it got, at any instance. */
export class Listener {
  readonly seen = new Set<string>();
  events = 0;
  #lastId = '';
  #position = 0;

  async listen(instances: readonly Instance[], ledger: Ledger, over: AbortSignal): Promise<void> {
    for (let turn = 0; !over.aborted; turn += 1) {
      const { url } = instances[turn % instances.length]!;
      const resume: Record<string, string> = this.#lastId === '' ? {} : { 'last-event-id': this.#lastId };
      try {
        const answer = await fetch(`${url}/events`, { headers: { 'x-api-key': adminKey, ...resume }, signal: over });
        const parser = createParser({ onEvent: (event) => this.#take(event, ledger) });
        const decoder = new TextDecoder();
        if (answer.status === 200) for await (const chunk of answer.body!) parser.feed(decoder.decode(chunk, { stream: true }));
      } catch {
        // The stream broke, and is resumed.
      }
      await sleep(100);
    }
  }

  #take({ event, id, data }: EventSourceMessage, ledger: Ledger): void {
    if (event === 'ping') return;
    if (event === 'reset') ledger.violation(`a stream was reset: ${data}`);
    if (id !== undefined) this.#lastId = id;
    if (event === 'connected' || event === 'reset') return;
    const position = Number.parseInt(id ?? '', 10);
    if (!(position > this.#position)) ledger.violation(`position ${position} came after ${this.#position}`);
    this.#position = position;
    this.events += 1;
    const name = `${event} ${JSON.parse(data).packet_id}`;
    if ((event === 'packet.created' || event === 'packet.completed') && this.seen.has(name)) ledger.violation(`${name} was sent twice`);
    this.seen.add(name);
  }
}

/** Starts a receiver of webhooks that refuses one in twenty first attempts. */
export async function startReceiver(ledger: Ledger): Promise<{ url: string; close(): void }> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => undefined);
    request.on('end', () => response.writeHead(receive(ledger, request.headers, Buffer.concat(chunks))).end());
  });
  const port = await listen(server);
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${port}/hook`, close };
}

function receive(ledger: Ledger, headers: IncomingHttpHeaders, body: Buffer): number {
  ledger.counts.posts += 1;
  const event = String(headers['webhook-id']);
  const delivery = String(headers['x-service-delivery']);
  const known = ledger.deliveries.get(event);
  if (known !== undefined && known !== delivery) ledger.violation(`the event ${event} came as two deliveries`);
  ledger.deliveries.set(event, delivery);
  // The same ones are refused in every run of the same ids, and only once.
  if (headers['x-service-attempt'] === '1' && createHash('sha1').update(delivery).digest()[0]! < 13) return 500;
  const { type, packet_id } = JSON.parse(body.toString());
  ledger.delivered.add(`${type} ${packet_id}`);
  return 204;
}
