import type { EventSourceMessage } from 'eventsource-parser';
import { ApiError, NetworkError, TimeoutError } from './client-errors.ts';
import { systemJitter } from './clock.ts';
import { defined } from './defined.ts';
import { encodedHeaders } from './header.ts';
import { readJson } from './json.ts';
import { fetchTransport, type Transport, type TransportAnswer } from './transport.ts';

/** Time and randomness of a connection; tests pass their own. */
export interface ClientDependencies {
  /** Resolves after `ms` milliseconds; rejects with the signal's reason when it aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** A random number from 0 to 1: jitter for the retries of clients that failed together. */
  random(): number;
  newIdempotencyKey(): string;
}

/** A step of a call, for a log. */
export type ClientStep =
  | { readonly kind: 'request'; readonly method: string; readonly url: string }
  | { readonly kind: 'answer'; readonly status: number; readonly request_id: string | undefined }
  | { readonly kind: 'wait'; readonly seconds: number; readonly error: Error };

export interface ConnectionOptions {
  /** The service's address, with the prefix of its paths if it has one: `http://localhost:8080`. */
  readonly baseUrl: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The timeout of one attempt; 30 by default. `waitSeconds` of a request is added to it. */
  readonly timeoutSeconds?: number;
  /** How often a failed request is retried; 2 by default. A stream tries on while the service is unavailable. */
  readonly retries?: number;
  /** Whether to retry as well when no connection can be made, for a stream the first one; true by default. */
  readonly retryUnreachable?: boolean;
  /** The longest `Retry-After` to wait for, 60 by default; with a longer one a request fails at once. A stream waits up to about ten minutes, or this long if it is longer. */
  readonly maxWaitSeconds?: number;
  readonly transport?: Transport;
  readonly dependencies?: ClientDependencies;
  /** Called for each step of a call. */
  readonly onStep?: (step: ClientStep) => void;
}

/** A request to a path below the base URL. */
interface ConnectionRequest {
  readonly method: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Whether the request may be carried out twice without harm. */
  readonly repeatable: boolean;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutSeconds?: number | undefined;
  /** How long the service may wait before it answers; added to the usual timeout. */
  readonly waitSeconds?: number | undefined;
}

/** A response whose body has been read. */
export interface ConnectionAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** A server-sent event. */
export interface ServerSentEvent {
  readonly id: string | undefined;
  readonly type: string;
  readonly data: string;
}

interface StreamRequest {
  readonly path: string;
  readonly query?: Readonly<Record<string, unknown>>;
  /** The id of the last event received: the stream resumes after it. */
  readonly lastEventId?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Statuses that a retry may resolve: a limit, and a service that is temporarily unavailable. */
const transientStatuses = [429, 502, 503, 504];

/** A stream that is silent for this long counts as broken: the service sends a ping every 30 seconds. */
const silenceMs = 75_000;
/** The most characters of an answer, and of an error's body. The longest pages of the services have 16 MiB. */
const maxAnswer = 64 * 1024 * 1024;
const maxErrorBody = 1024 * 1024;
/** The most characters of an event of a stream. */
const maxEvent = 16 * 1024 * 1024;
const defaultRetryMs = 3_000;
/** The longest pause that a stream may ask for. */
const maxRetryMs = 60_000;
const maxBackOffMs = 30_000;
/** The longest `Retry-After` that a stream waits for, unless the options allow a longer one. */
const maxStreamWaitSeconds = 600;

const defaults = {
  headers: {},
  timeoutSeconds: 30,
  retries: 2,
  retryUnreachable: true,
  maxWaitSeconds: 60,
  transport: fetchTransport,
  onStep: () => undefined,
};

/** Sends requests to a service, with retries, and reads its streams. It opens no socket before the first request. */
export class Connection {
  readonly #options: Required<Omit<ConnectionOptions, 'dependencies'>>;
  readonly #dependencies: ClientDependencies;

  constructor({ dependencies = systemDependencies, ...options }: ConnectionOptions) {
    this.#options = { ...defaults, ...defined(options), baseUrl: options.baseUrl.replace(/\/+$/, '') };
    this.#dependencies = dependencies;
  }

  /** Resolves after `ms` milliseconds; rejects with the signal's reason when it aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#dependencies.sleep(ms, signal);
  }

  newIdempotencyKey(): string {
    return this.#dependencies.newIdempotencyKey();
  }

  /** Rejects with ApiError, NetworkError, TimeoutError, or the signal's reason. A 304 is not an error. */
  async send(request: ConnectionRequest): Promise<ConnectionAnswer> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.#sendOnce(request);
      } catch (error) {
        const wait = this.#waitMs(error, attempt);
        if (wait === undefined || attempt >= this.#options.retries || !mayRepeat(request, error) || this.#isHopeless(error)) throw error;
        await this.#pause(wait, error as Error, request.signal);
      }
    }
  }

  /** Whether the service can't be reached, and no more attempts are wanted then. */
  #isHopeless(error: unknown): boolean {
    return !this.#options.retryUnreachable && error instanceof NetworkError && error.unsent;
  }

  /** Milliseconds until the next attempt; undefined if the service asks for a longer wait than is wanted. */
  #waitMs(error: unknown, attempt: number): number | undefined {
    const asked = error instanceof ApiError ? error.retryAfterSeconds : undefined;
    if (asked !== undefined) return asked <= this.#options.maxWaitSeconds ? asked * 1000 : undefined;
    return Math.min(maxBackOffMs, 500 * 2 ** attempt) * (0.5 + this.#dependencies.random() / 2);
  }

  /** Milliseconds until a stream is opened again that the service refused for longer than a request waits. */
  #longWaitMs({ retryAfterSeconds = 0 }: ApiError): number {
    const seconds = Math.min(retryAfterSeconds, Math.max(maxStreamWaitSeconds, this.#options.maxWaitSeconds));
    return seconds * 1000 * (1 + this.#dependencies.random() / 4);
  }

  async #pause(ms: number, error: Error, signal?: AbortSignal): Promise<void> {
    this.#options.onStep({ kind: 'wait', seconds: ms / 1000, error });
    await this.#dependencies.sleep(ms, signal);
  }

  async #sendOnce(request: ConnectionRequest): Promise<ConnectionAnswer> {
    const { method, body, signal, waitSeconds = 0, timeoutSeconds = this.#options.timeoutSeconds + waitSeconds } = request;
    const url = this.#urlOf(request);
    const json = body === undefined ? {} : { 'content-type': 'application/json' };
    const headers = encodedHeaders({ ...this.#options.headers, ...request.headers, ...json });
    const text = body === undefined ? {} : { body: JSON.stringify(body) };
    this.#options.onStep({ kind: 'request', method, url });
    const answer = await this.#within(url, timeoutSeconds, signal, async (inTime) => {
      const found = await this.#options.transport({ method, url, headers, ...text, signal: inTime });
      const isDone = (found.status >= 200 && found.status < 300) || found.status === 304;
      return { status: found.status, headers: found.headers, isDone, text: await (isDone ? textOf(found) : errorTextOf(found)) };
    });
    signal?.throwIfAborted();
    const { isDone, ...received } = answer;
    this.#options.onStep({ kind: 'answer', status: answer.status, request_id: answer.headers['x-request-id'] });
    if (!isDone) throw new ApiError(answer.status, answer.text, answer.headers);
    if (answer.text.length > maxAnswer) throw malformed(received, `The response is larger than ${maxAnswer / 1024 / 1024} MiB.`);
    return received;
  }

  /** Runs the work with a signal that aborts it at the timeout or with the caller's signal. */
  async #within<T>(url: string, seconds: number, signal: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    signal?.throwIfAborted();
    const ending = new AbortController();
    const timer = new AbortController();
    const onAbort = () => ending.abort(signal?.reason);
    signal?.addEventListener('abort', onAbort);
    this.#dependencies.sleep(seconds * 1000, timer.signal).then(
      () => ending.abort(new TimeoutError(url, seconds)),
      () => undefined,
    );
    try {
      return await work(ending.signal);
    } catch (error) {
      if (ending.signal.aborted) throw ending.signal.reason;
      throw new NetworkError(url, error);
    } finally {
      timer.abort();
      signal?.removeEventListener('abort', onAbort);
    }
  }

  /**
   * Reads a stream of server-sent events until the signal aborts or the service refuses it. While the service is unavailable it tries on, as
   * often as it takes, and it resumes after the last event.
   */
  async *stream(request: StreamRequest): AsyncGenerator<ServerSentEvent, void, undefined> {
    const state = { lastEventId: request.lastEventId, retryMs: defaultRetryMs };
    let everOpened = false;
    for (let failures = 0; ; failures += 1) {
      // An error of the code that consumes the events ends the generator and is never caught here.
      let fault: unknown;
      let opened = false;
      try {
        for await (const event of this.#readStream(request, state)) {
          opened = everOpened = true;
          failures = 0;
          yield event;
        }
        fault = new NetworkError(this.#urlOf(request), new Error('The stream ended.'));
      } catch (error) {
        fault = error;
      }
      request.signal?.throwIfAborted();
      const isPassing = fault instanceof NetworkError || fault instanceof TimeoutError || isTransient(fault);
      if (!isPassing || (!everOpened && this.#isHopeless(fault))) throw fault;
      const wait = opened ? state.retryMs : (this.#waitMs(fault, failures) ?? this.#longWaitMs(fault as ApiError));
      await this.#pause(wait, fault as Error, request.signal);
    }
  }

  /** Yields the events of one connection until it breaks; keeps the id of the last one in `state`. */
  async *#readStream(
    request: StreamRequest,
    state: { lastEventId: string | undefined; retryMs: number },
  ): AsyncGenerator<ServerSentEvent, void, undefined> {
    const url = this.#urlOf(request);
    const ending = new AbortController();
    const onAbort = () => ending.abort(request.signal?.reason);
    request.signal?.addEventListener('abort', onAbort);
    try {
      const answer = await this.#openStream(url, state.lastEventId, request.signal, ending);
      const { createParser } = await import('eventsource-parser');
      const waiting: EventSourceMessage[] = [];
      let fault: ApiError | undefined;
      const parser = createParser({
        maxBufferSize: maxEvent,
        onEvent: (event) => waiting.push(event),
        onRetry: (ms) => {
          Object.assign(state, { retryMs: Math.min(ms, maxRetryMs) });
        },
        onError: ({ type }) => {
          if (type === 'max-buffer-size-exceeded') fault = malformed(answer, `An event is larger than ${maxEvent / 1024 / 1024} MiB.`);
        },
      });
      const chunks = answer.chunks()[Symbol.asyncIterator]();
      for (;;) {
        const { done, value } = await this.#within(url, silenceMs / 1000, request.signal, (silent) => raced(chunks.next(), silent));
        if (done) return;
        parser.feed(value);
        for (const { id, event, data } of waiting.splice(0)) {
          if (id !== undefined) state.lastEventId = id;
          yield { id, type: event ?? 'message', data };
        }
        if (fault !== undefined) throw fault;
      }
    } finally {
      request.signal?.removeEventListener('abort', onAbort);
      ending.abort();
    }
  }

  async #openStream(
    url: string,
    lastEventId: string | undefined,
    signal: AbortSignal | undefined,
    ending: AbortController,
  ): Promise<TransportAnswer> {
    const headers = encodedHeaders({
      ...this.#options.headers,
      accept: 'text/event-stream',
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
    });
    this.#options.onStep({ kind: 'request', method: 'GET', url });
    const { answer, text } = await this.#within(url, this.#options.timeoutSeconds, signal, async (inTime) => {
      inTime.addEventListener('abort', () => ending.abort(inTime.reason));
      const answer = await this.#options.transport({ method: 'GET', url, headers, signal: ending.signal });
      return { answer, text: answer.status === 200 ? '' : await errorTextOf(answer) };
    });
    signal?.throwIfAborted();
    this.#options.onStep({ kind: 'answer', status: answer.status, request_id: answer.headers['x-request-id'] });
    if (answer.status !== 200) throw new ApiError(answer.status, text, answer.headers);
    return answer;
  }

  #urlOf({ path, query = {} }: { path: string; query?: Readonly<Record<string, unknown>> }): string {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined && one !== null) search.append(name, String(one));
    }
    return `${this.#options.baseUrl}${path}${search.size > 0 ? `?${search}` : ''}`;
  }
}

/** The body, until it has more than the most characters of one. With `isPart`, what arrived until the connection broke or the time was over. */
async function textOf(answer: TransportAnswer, most = maxAnswer, isPart = false): Promise<string> {
  let text = '';
  try {
    for await (const chunk of answer.chunks()) {
      text += chunk;
      if (text.length > most) break;
    }
  } catch (error) {
    if (!isPart) throw error;
  }
  return text;
}

/** What arrived of an error's body, up to a bound: the status alone says that the request failed, so a body that never ends doesn't hide it. */
const errorTextOf = (answer: TransportAnswer) => textOf(answer, maxErrorBody, true);

/** The error for a successful response that this client can't use. */
export function malformed({ status, headers }: Pick<ConnectionAnswer, 'status' | 'headers'>, detail: string): ApiError {
  return new ApiError(status, JSON.stringify({ detail }), headers);
}

/** The JSON of an event's data. @throws ApiError if it is not JSON */
export function eventJson(data: string): unknown {
  try {
    return readJson(data);
  } catch {
    throw malformed({ status: 200, headers: {} }, 'An event is not JSON. Check that the base URL leads to the service.');
  }
}

const isTransient = (error: unknown): boolean => error instanceof ApiError && transientStatuses.includes(error.status_code);

/** Whether a failed request may be sent again: it was rate limited or never sent, or it is repeatable. */
function mayRepeat({ repeatable }: ConnectionRequest, error: unknown): boolean {
  if (error instanceof ApiError) return error.status_code === 429 || (repeatable && isTransient(error));
  if (error instanceof NetworkError) return repeatable || error.unsent;
  return repeatable && error instanceof TimeoutError;
}

/** The promise, or a rejection with the signal's reason if it aborts first. */
function raced<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason));
    promise.then(resolve, reject);
  });
}

const systemDependencies: ClientDependencies = {
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', stop);
        resolve();
      }, ms);
      const stop = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      if (signal?.aborted) stop();
      else signal?.addEventListener('abort', stop, { once: true });
    }),
  random: systemJitter,
  // Browsers have `randomUUID` only on pages of HTTPS and of localhost.
  newIdempotencyKey: () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join(''),
};
