import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';

import { tooMuchInHand } from '../errors.ts';
import { MemoryBudget } from '../memory-budget.ts';

/** Answers from this length on, in bytes, are counted and watched; of smaller ones the cost would be felt. */
export const largeFrom = 64 * 1024;

/** How much of a large answer is handed on at once: each piece that is taken is progress. */
const pieceBytes = 64 * 1024;

/** How long a large answer may stand still, in milliseconds, before its connection is cut. */
const standstillMs = 60_000;

/** Sends bodies; large ones within one bound for all answers that are not taken yet. */
export interface Answers {
  /**
   * Sends a body for an owner. A large one is counted until the connection has taken it, and its connection is cut after
   * a minute without progress. An answer that goes to many at once is counted once.
   * @throws ServiceError 503 when the answers in hand leave no room for it
   */
  send(reply: FastifyReply, owner: string, body: string | Buffer): FastifyReply;
}

/** @param bytes the most bytes of large answers in hand, of which one owner may have a quarter */
export function createAnswers(bytes: number): Answers {
  const budget = new MemoryBudget(bytes);
  const sending = new Map<Buffer, { owner: string; count: number }>();

  function hold(owner: string, body: Buffer): void {
    const known = sending.get(body);
    if (known !== undefined) {
      known.count += 1;
      return;
    }
    if (!budget.acquire(owner, body.length)) throw tooMuchInHand('large answers that were not taken yet');
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

/** A body piece by piece; tells of each that is asked for, so of each that was taken before. */
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
