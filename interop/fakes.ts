import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import type { InjectedFault } from '../src/fallback/rules/plan.ts';

/** A failure of a fake provider, and the fault that simulates it. */
export interface Way {
  fault: Pick<InjectedFault, 'condition' | 'status_code'>;
  answer(response: ServerResponse): void;
}

const refuse =
  (status: number, code: string, message = 'It failed.') =>
  (response: ServerResponse) =>
    response
      .writeHead(status, { 'content-type': 'application/json', 'retry-after': '1' })
      .end(JSON.stringify({ error: { message, type: code, code } }));
const say = (body: string) => (response: ServerResponse) => response.writeHead(200, { 'content-type': 'application/json' }).end(body);
const way = (condition: NonNullable<InjectedFault['condition']>, status_code: number | null, answer: Way['answer']): Way => ({
  fault: { condition, status_code },
  answer,
});
export const completion = (content: string, finish_reason = 'stop') => ({
  id: 'c1',
  object: 'chat.completion',
  system_fingerprint: 'f',
  service_tier: 'default',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
});

/** The failures, by name. */
export const ways = {
  rate_limit: way('rate_limit', 429, refuse(429, 'rate_limit_exceeded')),
  quota: way('quota_exceeded', 429, refuse(429, 'insufficient_quota')),
  payment: way('quota_exceeded', 402, refuse(402, 'payment_required')),
  server_error: way('server_error', 500, refuse(500, 'server_error')),
  unavailable: way('server_error', 503, refuse(503, 'unavailable')),
  overloaded: way('server_error', 529, refuse(529, 'overloaded_error')),
  gateway_timeout: way('timeout', 504, refuse(504, 'timeout')),
  hang: way('timeout', null, () => undefined),
  reset: way('connection_error', null, (response) => void response.socket!.resetAndDestroy()),
  unauthorized: way('auth_error', 401, refuse(401, 'invalid_api_key')),
  forbidden: way('auth_error', 403, refuse(403, 'forbidden')),
  bad_request: way('invalid_request', 400, refuse(400, 'invalid_request_error')),
  not_found: way('model_not_found', 404, refuse(404, 'model_not_found')),
  wrong_path: way('invalid_request', 404, refuse(404, 'not_found')),
  unsupported: way('unsupported_request', 400, refuse(400, 'unsupported_parameter')),
  gone: way('invalid_request', 410, refuse(410, 'gone')),
  conflict: way('invalid_request', 409, refuse(409, 'conflict')),
  too_long: way('context_length', 400, refuse(400, 'context_length_exceeded', "This model's maximum context length is 8192 tokens.")),
  too_large: way('context_length', 413, refuse(413, 'request_too_large')),
  filtered: way(
    'content_filter',
    400,
    refuse(400, 'content_filter', "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."),
  ),
  held_back: way('content_filter', 200, say(JSON.stringify(completion('', 'content_filter')))),
  empty: way('invalid_response', 200, say(JSON.stringify(completion('')))),
  broken: way('invalid_response', 200, say('{"id": "c1", "choices": [')),
} satisfies Record<string, Way>;

export type WayName = keyof typeof ways;

/** The behaviour of a provider: undefined if it answers, else its failure, always or on the first `times` calls. */
export type Behaviour = { way: WayName; times?: number } | undefined;

/** Fake providers on loopback, each under its own path. */
export interface Fakes {
  /** The base URL of provider `index`, with its version path. */
  base(index: number): string;
  /** Sets the behaviour of each provider and resets the counts. */
  play(behaviours: readonly Behaviour[]): void;
  /** The number of calls of each provider since then. */
  calls(): number[];
  /** The request bodies since then. */
  bodies(): unknown[];
  stop(): Promise<void>;
}

/** Starts fake providers with OpenAI's chat completions, at `/messages` Anthropic's messages, and Ollama's own API beside its `/v1`. */
export async function startFakes(count: number): Promise<Fakes> {
  let played: readonly Behaviour[] = [];
  let called: number[] = [];
  let bodies: unknown[] = [];
  const server = createServer(async (request, response) => {
    const body = await bodyOf(request);
    const [, digits] = /^\/p(\d+)\/(?:v1\/[\w/-]+|api\/(?:generate|chat))$/.exec(request.url!) ?? [];
    if (digits === undefined || request.url!.includes('/v1/v1/')) {
      refuse(404, 'not_found', `${request.url} is no address of a provider.`)(response);
      return;
    }
    const index = Number(digits);
    bodies.push(body);
    called[index] = (called[index] ?? 0) + 1;
    const behaviour = played[index];
    if (behaviour !== undefined && called[index]! <= (behaviour.times ?? Number.POSITIVE_INFINITY)) {
      ways[behaviour.way].answer(response);
      return;
    }
    if ((body as { stream?: boolean } | null)?.stream === true) stream(response, `p${index}`);
    else say(JSON.stringify(answerAt(request.url!)(`p${index}`)))(response);
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    base: (index) => `http://127.0.0.1:${port}/p${index}/v1`,
    play(behaviours) {
      played = behaviours;
      called = Array.from({ length: count }, () => 0);
      bodies = [];
    },
    calls: () => called,
    bodies: () => bodies,
    stop() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Streams an answer like OpenAI's chat completions. */
function stream(response: ServerResponse, text: string): void {
  const chunk = (delta: object, finish_reason: string | null) =>
    `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.end(`${chunk({ role: 'assistant', content: text }, null)}${chunk({}, 'stop')}data: [DONE]\n\n`);
}

const message = (text: string) => ({
  id: 'm1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 1, output_tokens: 1 },
});

/** An answer of Ollama's own API: to a prompt, and to messages. */
const ofOllama = (text: string) => ({
  model: 'm',
  created_at: '2026-01-01T00:00:00Z',
  response: text,
  message: { role: 'assistant', content: text },
  done: true,
  done_reason: 'stop',
  prompt_eval_count: 1,
  eval_count: 1,
});

const answerAt = (url: string): ((text: string) => object) =>
  url.endsWith('/messages') ? message : url.includes('/api/') ? ofOllama : completion;

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  let text = '';
  for await (const chunk of request) text += chunk;
  return text === '' ? null : JSON.parse(text);
}
