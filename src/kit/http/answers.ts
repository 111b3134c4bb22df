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
}

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
      const { raw } = reply;
      let isOver = false;
      let standstill: NodeJS.Timeout | undefined;
      const progress = () => {
        clearTimeout(standstill);
        if (!isOver) standstill = setTimeout(() => raw.destroy(), standstillMs);
      };
      const over = () => {
        if (isOver) return;
        isOver = true;
        clearTimeout(standstill);
        letGo(bytes);
      };
      raw.once('finish', over);
      raw.once('close', over);
      return reply.header('content-length', bytes.length).send(new Pieces(bytes, progress));
    },
  };
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
