import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

import { ServiceError, tooManyPending } from '../errors.ts';
import type { MemoryBudget } from '../memory-budget.ts';

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

/** Bodies below this many bytes are not counted: there can't be enough of them at once to matter. */
const largeFrom = 64 * 1024;

interface Reading {
  /** The size limit in bytes. */
  limit: number;
  /** The message for a larger body. */
  tooLarge(limit: number): string;
  /** The body's Content-Length; NaN if there is none. */
  announced: number;
  /** The memory budget of large bodies of all requests in progress. */
  budget: MemoryBudget;
  /** The owner to charge in the budget. */
  owner: string;
}

/**
 * Reads a body up to its limit, whatever its Content-Length says.
 * @param done called once, with an error or the bytes, and the bytes held of the budget; a refused body is left unread
 */
export function readBody(
  payload: IncomingMessage,
  { limit, tooLarge, announced, budget, owner }: Reading,
  done: (error: Error | null, bytes: Buffer | undefined, held: number) => void,
): void {
  if (announced > limit) {
    done(new ServiceError('PAYLOAD_TOO_LARGE', tooLarge(limit)), undefined, 0);
    return;
  }
  let chunks: Buffer[] = [];
  let size = 0;
  let held = 0;
  let isDone = false;
  const finish = (error: Error | null, bytes?: Buffer) => {
    if (isDone) return;
    isDone = true;
    if (error !== null) chunks = [];
    done(error, bytes, held);
  };
  const stop = (error: Error) => {
    payload.removeAllListeners('data');
    finish(error);
  };
  payload.on('data', (chunk: Buffer) => {
    size += chunk.length;
    chunks.push(chunk);
    if (size > limit) stop(new ServiceError('PAYLOAD_TOO_LARGE', tooLarge(limit)));
    else if (size > largeFrom) {
      if (budget.acquire(owner, size - held)) held = size;
      else stop(tooManyPending('large requests'));
    }
  });
  payload.on('end', () => finish(null, chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
  // When the sender disconnects, Node emits an error and then the end. That is not a failure of the service.
  const cutOff = () => finish(new ServiceError('VALIDATION_ERROR', 'The body ended too early.'));
  payload.on('error', cutOff);
  payload.on('close', () => {
    if (!payload.complete) cutOff();
  });
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
