import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';

import { tooManyPending } from '../errors.ts';
import { MemoryBudget } from '../memory-budget.ts';

/** Responses of at least this many bytes are counted and timed; for smaller ones the overhead would be measurable. */
export const largeFrom = 64 * 1024;

/** The size of the pieces of a large response. Each piece that the connection accepts is progress. */
const pieceBytes = 64 * 1024;

/** How long a large response may make no progress, in milliseconds, before its connection is closed. */
const standstillMs = 60_000;

/** Sends bodies. All large ones that clients have not read yet share a memory limit. */
export interface Answers {
  /**
   * Sends a body. A large one counts against its owner until the connection has accepted all of it; the connection is
   * closed after a minute without progress. A buffer that is sent to several clients at once is counted once.
   * @throws ServiceError 503 if the memory limit is reached
   */
  send(reply: FastifyReply, owner: string, body: string | Buffer): FastifyReply;
  /**
   * Sends a body whose pieces are read as fast as the connection accepts them. It counts as much as it can hold at once.
   * @throws ServiceError 503 if the memory limit is reached
   */
  sendPieces(reply: FastifyReply, owner: string, pieces: AsyncIterable<string>): FastifyReply;
}

/** What an answer in pieces of a MiB holds at once: a piece that is read, one that is sent, and one in the connection's buffer. */
const heldByPieces = 3 * 1024 * 1024;

/** @param bytes the limit for all large responses in progress; one owner may hold a quarter of it */
export function createAnswers(bytes: number): Answers {
  const budget = new MemoryBudget(bytes);
  const sending = new Map<Buffer, { owner: string; count: number }>();

  function hold(owner: string, body: Buffer): void {
    const known = sending.get(body);
    if (known !== undefined) {
      known.count += 1;
      return;
    }
    if (!budget.acquire(owner, body.length)) throw tooManyPending('large unread answers');
    sending.set(body, { owner, count: 1 });
  }

  function letGo(body: Buffer): void {
    const known = sending.get(body);
    if (known === undefined) return;
    known.count -= 1;
    if (known.count > 0) return;
    sending.delete(body);
    budget.release(known.owner, body.length);
  }

  return {
    send(reply, owner, body) {
      if (body.length <= largeFrom) return reply.send(body);
      const bytes = typeof body === 'string' ? Buffer.from(body) : body;
      hold(owner, bytes);
      const progress = watch(reply, () => letGo(bytes));
      return reply.header('content-length', bytes.length).send(new Pieces(bytes, progress));
    },

    sendPieces(reply, owner, pieces) {
      if (!budget.acquire(owner, heldByPieces)) throw tooManyPending('large unread answers');
      const progress = watch(reply, () => budget.release(owner, heldByPieces));
      return reply.send(Readable.from(inBytes(pieces, progress), { highWaterMark: 1 }));
    },
  };
}

/**
 * Closes the connection after a minute without progress.
 * @param onOver called once, when the response is sent or its connection is closed
 * @returns the function to call for each piece of progress
 */
function watch({ raw }: FastifyReply, onOver: () => void): () => void {
  let isOver = false;
  let standstill: NodeJS.Timeout | undefined;
  const over = () => {
    if (isOver) return;
    isOver = true;
    clearTimeout(standstill);
    onOver();
  };
  raw.once('finish', over);
  raw.once('close', over);
  return () => {
    clearTimeout(standstill);
    if (!isOver) standstill = setTimeout(() => raw.destroy(), standstillMs);
  };
}

/** Texts as bytes in small pieces, each of which counts as progress when the connection requests it. */
async function* inBytes(texts: AsyncIterable<string>, onProgress: () => void): AsyncGenerator<Buffer, void> {
  for await (const text of texts) {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      onProgress();
      yield bytes.subarray(at, at + pieceBytes);
    }
  }
}

/** A body in pieces. `onProgress` is called when the next piece is requested, so when the previous one was accepted. */
class Pieces extends Readable {
  readonly #body: Buffer;
  readonly #onProgress: () => void;
  #at = 0;

  constructor(body: Buffer, onProgress: () => void) {
    super({ highWaterMark: pieceBytes });
    this.#body = body;
    this.#onProgress = onProgress;
  }

  override _read(): void {
    this.#onProgress();
    const piece = this.#body.subarray(this.#at, this.#at + pieceBytes);
    this.#at += piece.length;
    this.push(piece.length === 0 ? null : piece);
  }
}
