import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

import { ServiceError, tooMuchInHand } from '../errors.ts';
import type { MemoryBudget } from '../memory-budget.ts';

/**
 * Whether a body is announced as JSON or as one of the text types.
 * @throws ServiceError 415 when it is neither, compressed, or not in UTF-8
 */
export function bodyKind(
  { 'content-type': type, 'content-encoding': encoding }: IncomingHttpHeaders,
  textTypes: readonly string[] = [],
): 'json' | 'text' {
  if (encoding !== undefined && encoding.trim().toLowerCase() !== 'identity')
    throw new ServiceError('UNSUPPORTED_MEDIA_TYPE', 'The body must not be compressed: Content-Encoding is not taken.');
  if (type === 'application/json') return 'json';
  const [essence = '', ...parameters] = (type ?? '').split(';').map((part) => part.trim().toLowerCase());
  const charset = parameters.find((parameter) => parameter.startsWith('charset='));
  const isJson = essence === 'application/json' || /^application\/[\w.-]+\+json$/.test(essence);
  if ((!isJson && !textTypes.includes(essence)) || (charset !== undefined && !/^charset="?utf-?8"?$/.test(charset))) {
    throw new ServiceError('UNSUPPORTED_MEDIA_TYPE', `The body must be ${['application/json', ...textTypes].join(', ')} in UTF-8.`);
  }
  return isJson ? 'json' : 'text';
}

/** The text of a body; 400 when it is not UTF-8 or has a NUL, which no database keeps in a text. */
export function textOf(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new ServiceError('VALIDATION_ERROR', 'The body is not valid UTF-8.');
  if (bytes.includes(0)) throw new ServiceError('VALIDATION_ERROR', 'The body has a character that is not allowed.');
  return bytes.toString();
}

/** Smaller bodies, in bytes, are not counted: there can't be enough of them at once to matter. */
const largeFrom = 64 * 1024;

interface Reading {
  /** The most bytes it may have. */
  limit: number;
  /** The sentence for one that has more. */
  tooLarge(limit: number): string;
  /** Its Content-Length; NaN if it has none. */
  announced: number;
  /** What the large bodies of all requests in hand may hold. */
  budget: MemoryBudget;
  /** Whose share of the budget it takes. */
  owner: string;
}

/**
 * Reads a body, counting: one byte over the limit is refused, whatever its Content-Length said.
 * @param done is called once, with the error or the bytes and how many of them are counted; what is refused is left unread
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
      else stop(tooMuchInHand('large requests'));
    }
  });
  payload.on('end', () => finish(null, chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
  // A sender that hangs up is no failure of ours: Node tells of it by an error, then by the end.
  const cutOff = () => finish(new ServiceError('VALIDATION_ERROR', 'The body ended too early.'));
  payload.on('error', cutOff);
  payload.on('close', () => {
    if (!payload.complete) cutOff();
  });
}

/** How much of a refused body is passed over before the connection is cut, in bytes. The time is bounded for any request. */
const maxPassedOver = 64 * 1024 * 1024;

/** Reads what is left of a body to nowhere, so that its sender, who may look for the answer only then, comes to the end. */
export function passOver(payload: IncomingMessage): void {
  let size = 0;
  payload.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > maxPassedOver) payload.destroy();
  });
  payload.resume();
}
