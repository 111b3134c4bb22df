import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

import { rethrow } from '../awaitable.ts';
import { ServiceError, tooManyPending } from '../errors.ts';
import type { MemoryBudget } from '../memory-budget.ts';
import type { Turns } from '../turns.ts';

/**
 * Whether the `Content-Type` of a body is JSON or one of the text types.
 * @throws ServiceError 415 if it is neither, or if the body is compressed or not in UTF-8
 */
export function bodyKind(
  { 'content-type': type, 'content-encoding': encoding }: IncomingHttpHeaders,
  textTypes: readonly string[] = [],
): 'json' | 'text' {
  if (encoding !== undefined && encoding.trim().toLowerCase() !== 'identity')
    throw new ServiceError('UNSUPPORTED_MEDIA_TYPE', 'The body must not be compressed: Content-Encoding is not supported.');
  if (type === 'application/json') return 'json';
  const [essence = '', ...parameters] = (type ?? '').split(';').map((part) => part.trim().toLowerCase());
  const charset = parameters.find((parameter) => parameter.startsWith('charset='));
  const isJson = essence === 'application/json' || /^application\/[\w.-]+\+json$/.test(essence);
  if ((!isJson && !textTypes.includes(essence)) || (charset !== undefined && !/^charset="?utf-?8"?$/.test(charset))) {
    throw new ServiceError('UNSUPPORTED_MEDIA_TYPE', `The body must be ${['application/json', ...textTypes].join(', ')} in UTF-8.`);
  }
  return isJson ? 'json' : 'text';
}

/** The text of a body. @throws ServiceError 400 if it is not UTF-8 or contains NUL, which PostgreSQL can't store in a text */
export function textOf(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new ServiceError('VALIDATION_ERROR', 'The body is not valid UTF-8.');
  if (bytes.includes(0)) throw new ServiceError('VALIDATION_ERROR', 'The body has a character that is not allowed.');
  return bytes.toString();
}

/** Bodies below this many bytes are not counted and take no turn: there can't be enough of them at once to matter. */
const largeFrom = 64 * 1024;

interface Reading {
  /** The size limit in bytes. */
  limit: number;
  /** The message for a larger body. */
  tooLarge: (limit: number) => string;
  /** The body's Content-Length; NaN if there is none. */
  announced: number;
  /** The memory budget of large bodies of all requests in progress. */
  budget: MemoryBudget;
  /** The owner to charge in the budget. */
  owner: string;
  /** Where a large body gets a turn of the event loop, in which it is read. */
  turns?: Turns;
  /** On whose behalf it takes the turn; left out: the owner. */
  turnOwner?: unknown;
}

/** Called once, with an error or the bytes, and the bytes held of the budget; with a large body, in a turn that no other has. */
type BodyDone = (error: Error | null, bytes: Buffer | undefined, held: number) => void;

const readerOf = Symbol('reader');

interface ReadPayload extends IncomingMessage {
  [readerOf]: BodyReader;
}

/**
 * The state of one body that is being read. The listeners are shared and find it at the request: with functions made for
 * each request as listeners, minor collections under load copied a third of all that was allocated.
 */
class BodyReader {
  readonly #reading: Reading;
  readonly #done: BodyDone;
  #chunks: Buffer[] = [];
  #size = 0;
  #held = 0;
  #isDone = false;

  constructor(reading: Reading, done: BodyDone) {
    this.#reading = reading;
    this.#done = done;
  }

  add(payload: IncomingMessage, chunk: Buffer): void {
    const { limit, tooLarge, budget, owner } = this.#reading;
    this.#size += chunk.length;
    this.#chunks.push(chunk);
    if (this.#size > limit) this.#stop(payload, new ServiceError('PAYLOAD_TOO_LARGE', tooLarge(limit)));
    else if (this.#size > largeFrom) {
      if (budget.acquire(owner, this.#size - this.#held)) this.#held = this.#size;
      else this.#stop(payload, tooManyPending('large requests'));
    }
  }

  /** Several large bodies may end in one turn of the event loop, and each takes long to read. */
  end(): void {
    const { turns, owner, turnOwner = owner } = this.#reading;
    if (turns === undefined || this.#held === 0) this.#read();
    else turns.next(turnOwner).then(this.#read).catch(rethrow);
  }

  readonly #read = (): void => {
    this.#finish(null, this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks));
  };

  /** When the sender disconnects, Node emits an error and then the end. That is not a failure of the service. */
  cutOff(): void {
    this.#finish(new ServiceError('VALIDATION_ERROR', 'The body ended too early.'));
  }

  #stop(payload: IncomingMessage, error: Error): void {
    payload.removeAllListeners('data');
    this.#finish(error);
  }

  #finish(error: Error | null, bytes?: Buffer): void {
    if (this.#isDone) return;
    this.#isDone = true;
    if (error !== null) this.#chunks = [];
    this.#done(error, bytes, this.#held);
  }
}

function onData(this: ReadPayload, chunk: Buffer): void {
  this[readerOf].add(this, chunk);
}

function onEnd(this: ReadPayload): void {
  this[readerOf].end();
}

function onError(this: ReadPayload): void {
  this[readerOf].cutOff();
}

function onClose(this: ReadPayload): void {
  if (!this.complete) this[readerOf].cutOff();
}

/** Reads a body up to its limit, whatever its Content-Length says. A refused body is left unread. */
export function readBody(payload: IncomingMessage, reading: Reading, done: BodyDone): void {
  const { announced, limit, tooLarge } = reading;
  if (announced > limit) {
    done(new ServiceError('PAYLOAD_TOO_LARGE', tooLarge(limit)), undefined, 0);
    return;
  }
  (payload as ReadPayload)[readerOf] = new BodyReader(reading, done);
  payload.on('data', onData).on('end', onEnd).on('error', onError).on('close', onClose);
}

/** How many bytes of a refused body are discarded before the connection is closed. The request timeout limits the time. */
const maxDiscardedBytes = 64 * 1024 * 1024;

/** Discards the rest of a body, because some clients read the response only after they have sent everything. */
export function discardBody(payload: IncomingMessage): void {
  let size = 0;
  payload.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > maxDiscardedBytes) payload.destroy();
  });
  payload.resume();
}
