import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { TestContext } from 'node:test';

/** A provider of a gateway, which waits 3 s for it, and how often it retries a status; null is a connection that breaks. */
interface Upstream {
  /** Its address, or those of a group, which are drawn in turn. */
  readonly base: string | readonly string[];
  readonly protocol?: 'openai' | 'anthropic';
  readonly retries: ReadonlyMap<number | null, number>;
  /** The limits of its streams. */
  readonly firstTokenMs?: number;
  readonly idleMs?: number;
  /** How long it is left out after a failure. */
  readonly cooldownMs?: number;
}

/** What a gateway does wrong on purpose. */
export type Flaw =
  | 'one retry too few'
  | 'wrong order'
  | 'swallowed 429'
  | 'second call after success'
  | 'call after the answer'
  | 'retries after content'
  | 'duplicates text'
  | 'swallows an error event'
  | 'drops tools'
  | 'ignores first_token_ms'
  | 'forgets a cool-down'
  | 'resets reused connections'
  | 'gives up its first call';

export interface TestGateway {
  /** Its base URL. */
  readonly url: string;
  /** The headers of the requests it got. */
  readonly seen: Record<string, unknown>[];
}

/** Starts a gateway that tries its providers in order and retries as told; it ends with the test. */
export async function startGateway(t: Pick<TestContext, 'after'>, upstreams: readonly Upstream[], flaw?: Flaw): Promise<TestGateway> {
  const seen: TestGateway['seen'] = [];
  const server = await serveGateway(upstreams, { seen, ...(flaw === undefined ? {} : { flaw }) });
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, seen };
}

interface GatewayOptions {
  readonly port?: number;
  readonly flaw?: Flaw;
  /** The headers of the requests are added here. */
  readonly seen?: Record<string, unknown>[];
}

/** Starts the server of a gateway on loopback. */
export async function serveGateway(upstreams: readonly Upstream[], { port = 0, flaw, seen = [] }: GatewayOptions): Promise<Server> {
  const outs = new Map<Upstream, number>();
  const used = new WeakSet<Socket>();
  const server = createServer(async (request, response) => {
    if (flaw === 'resets reused connections' && used.has(request.socket)) {
      request.socket.resetAndDestroy();
      return;
    }
    used.add(request.socket);
    if (request.method === 'GET') {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"data":[],"litellm_version":"1.2.3"}');
      return;
    }
    seen.push(request.headers);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { tools, ...others } = JSON.parse(Buffer.concat(chunks).toString()) as { stream?: boolean; tools?: unknown };
    const body = JSON.stringify({ ...others, ...(tools === undefined || flaw === 'drops tools' ? {} : { tools }) });
    const isGivenUp = flaw === 'gives up its first call' && seen.length === 1;
    if (isGivenUp) await new Promise((resolve) => setTimeout(resolve, 100));
    const isOut = (upstream: Upstream) => flaw !== 'forgets a cool-down' && (outs.get(upstream) ?? 0) > performance.now();
    const left = (isGivenUp ? upstreams.slice(1) : upstreams).filter((upstream) => !isOut(upstream));
    if (others.stream === true) await routeStream(body, left, flaw, response);
    else await route(body, left, flaw, response, (failed) => outs.set(failed, performance.now() + (failed.cooldownMs ?? 0)));
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return server;
}

/** The answer of a provider; the status is null if the connection broke. */
interface Got {
  status: number | null;
  text: string;
}

const draws = new WeakMap<Upstream, number>();

/** The address of the next call. */
function drawn(upstream: Upstream): string {
  if (typeof upstream.base === 'string') return upstream.base;
  const draw = draws.get(upstream) ?? 0;
  draws.set(upstream, draw + 1);
  return upstream.base[draw % upstream.base.length]!;
}

async function call(upstream: Upstream, body: string): Promise<Got> {
  const { protocol = 'openai' } = upstream;
  try {
    const signal = AbortSignal.timeout(4_000);
    const path = protocol === 'anthropic' ? 'messages' : 'chat/completions';
    const response = await fetch(`${drawn(upstream)}/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      signal,
    });
    return { status: response.status, text: await response.text() };
  } catch {
    return { status: null, text: '' };
  }
}

const isUsable = ({ status, text }: Got) => {
  if (status !== 200) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

async function route(
  body: string,
  upstreams: readonly Upstream[],
  flaw: Flaw | undefined,
  response: ServerResponse,
  onFailed: (upstream: Upstream) => void,
): Promise<void> {
  const order = flaw === 'wrong order' && upstreams.length > 0 ? [upstreams[0]!, ...upstreams.slice(1).reverse()] : upstreams;
  let last: Got = { status: null, text: '' };
  for (const upstream of order) {
    const used = new Map<number | null, number>();
    for (;;) {
      last = await call(upstream, body);
      if (isUsable(last)) {
        if (flaw === 'second call after success') await call(upstream, body);
        response.writeHead(200, { 'content-type': 'application/json' }).end(answer(last.text));
        if (flaw === 'call after the answer') await call(upstream, body);
        return;
      }
      onFailed(upstream);
      if (flaw === 'swallowed 429' && last.status === 429) {
        response.writeHead(200, { 'content-type': 'application/json' }).end(answer(''));
        return;
      }
      const count = used.get(last.status) ?? 0;
      const allowed = (upstream.retries.get(last.status) ?? 0) - (flaw === 'one retry too few' ? 1 : 0);
      if (count >= allowed) break;
      used.set(last.status, count + 1);
    }
    // A request that only this provider does not take goes on to the next one.
    if (last.status === 400 && !last.text.includes('unsupported_parameter')) break;
  }
  response.writeHead(last.status ?? 502, { 'content-type': 'application/json' }).end(last.text || '{}');
}

/** An answer of OpenAI's form with the text of any provider. */
function answer(text: string): string {
  const found = text === '' ? {} : (JSON.parse(text) as { choices?: unknown; content?: { text?: string }[] });
  if (found.choices !== undefined) return text;
  const content = found.content?.[0]?.text ?? 'Something else.';
  return JSON.stringify({ choices: [{ message: { role: 'assistant', content }, finish_reason: 'stop' }] });
}

const done = 'data: [DONE]\n\n';
const failed = 'data: {"error": {"message": "It failed.", "type": "server_error"}}\n\n';
const isContent = (event: string) => /"content":"[^"]|"tool_calls"/.test(event);

/** The events of a stream. @throws Error if it ends early, is late, or has an error or a part that is no JSON */
async function* eventsOf(upstream: Upstream, body: string, flaw: Flaw | undefined): AsyncGenerator<string> {
  const { firstTokenMs, idleMs } = upstream;
  const ending = new AbortController();
  const limited = (ms: number | undefined) => (ms === undefined ? undefined : setTimeout(() => ending.abort(), ms));
  let timer = limited(flaw === 'ignores first_token_ms' ? undefined : firstTokenMs);
  try {
    const headers = { 'content-type': 'application/json' };
    const signal = AbortSignal.any([ending.signal, AbortSignal.timeout(4_000)]);
    const response = await fetch(`${drawn(upstream)}/chat/completions`, { method: 'POST', headers, body, signal });
    if (response.status !== 200) throw new Error(String(response.status), { cause: response.status });
    const decoder = new TextDecoder();
    let text = '';
    for await (const chunk of response.body!) {
      text += decoder.decode(chunk, { stream: true });
      const events = text.split('\n\n');
      text = events.pop()!;
      for (const event of events) {
        if (!event.endsWith('[DONE]') && 'error' in JSON.parse(event.slice('data: '.length))) throw new Error('An error event.');
        if (isContent(event)) {
          clearTimeout(timer);
          timer = limited(idleMs);
        }
        yield `${event}\n\n`;
        if (event.endsWith('[DONE]')) return;
      }
    }
    throw new Error('The stream has no final event.');
  } finally {
    clearTimeout(timer);
    ending.abort();
  }
}

/** Sends the stream of the first provider that has content, and no other behind that. */
async function routeStream(body: string, upstreams: readonly Upstream[], flaw: Flaw | undefined, response: ServerResponse): Promise<void> {
  let hasContent = false;
  for (const upstream of upstreams) {
    for (let count = 0; ; count += 1) {
      let held = '';
      try {
        for await (const event of eventsOf(upstream, body, flaw)) {
          held += isContent(event) && flaw === 'duplicates text' ? event + event : event;
          if (!isContent(event) && !hasContent) continue;
          if (!hasContent) response.writeHead(200, { 'content-type': 'text/event-stream' });
          hasContent = true;
          response.write(held);
          held = '';
        }
        if (!hasContent) response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.end(held);
        return;
      } catch (error) {
        const { cause } = error as Error;
        const retries = (upstream.retries.get(typeof cause === 'number' ? cause : null) ?? 0) - (flaw === 'one retry too few' ? 1 : 0);
        if (hasContent && flaw !== 'retries after content') {
          response.end(flaw === 'swallows an error event' ? done : failed);
          return;
        }
        if (hasContent ? count > 0 : count >= retries) break;
      }
    }
  }
  if (hasContent) response.end(failed);
  else response.writeHead(502, { 'content-type': 'application/json' }).end('{}');
}
