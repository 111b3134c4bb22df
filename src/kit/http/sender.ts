import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';

import { type ServiceError, tooManyPending } from '../errors.ts';
import { MemoryBudget, SharedBuffers } from '../memory-budget.ts';
import type { ResponseShape } from '../route.ts';
import type { Exchange } from './exchange.ts';
import { HttpResponse, JsonText, largeFrom, type ResponseOptions, StreamResponse, TextPieces } from './response.ts';
import type { SchemaShape } from './validate.ts';

/** The size of the pieces of a large response. Each piece that the connection accepts is progress. */
const pieceBytes = 64 * 1024;

/** How long a large response may make no progress, in milliseconds, before its connection is closed. */
const standstillMs = 60_000;

/** What a response in pieces of a MiB holds at once: a piece that is read, one that is sent, and one in the connection's buffer. */
const heldByPieces = 3 * 1024 * 1024;

/** The largest total of large answers, in bytes. What was read for an answer, and its text, are in memory until they are collected. */
const answerBytes = 160 * 1024 * 1024;

/** The default limit on what is read for answers, until clients have read them. */
export const answerBudget = (): MemoryBudget => new MemoryBudget(answerBytes);

/** The refusal of an answer that the limit has no room for. */
export const tooManyAnswers = (): ServiceError => tooManyPending('large unread answers');

/** Sends responses. All large ones that clients have not read yet share a memory limit. */
export class Sender {
  readonly #budget: MemoryBudget;
  readonly #sending: SharedBuffers;

  /** @param budget the limit for all large responses in progress */
  constructor(budget: MemoryBudget) {
    this.#budget = budget;
    this.#sending = new SharedBuffers(budget);
  }

  /**
   * Sends what a handler returned.
   * @param result a body, an HttpResponse or a StreamResponse
   * @throws ServiceError 503 if the memory limit is reached
   */
  send(exchange: Exchange<unknown>, result: unknown, successStatus: number): void {
    if (result instanceof StreamResponse) openStream(exchange, result);
    else this.#write(exchange, successStatus, result instanceof HttpResponse ? result.parts : { body: result });
  }

  #write(
    { route, request, reply, owner }: Exchange<unknown>,
    successStatus: number,
    { status = successStatus, headers, body }: ResponseOptions<unknown>,
  ): void {
    reply.code(status);
    if (reply.server.isStopping()) reply.header('connection', 'close');
    if (headers !== undefined) reply.headers(headers);
    if (body === undefined) {
      reply.send();
      return;
    }
    const shape = route.responses[status];
    if (!reply.hasHeader('content-type')) reply.type(shape?.contentType ?? 'application/json; charset=utf-8');
    if (!(body instanceof TextPieces)) this.sendText(reply, owner, serialized(body, shape));
    else if (request.method === 'HEAD') reply.send('');
    else this.#sendPieces(reply, owner, body.pieces);
  }

  /** Sends a text. A large one counts against its owner until the connection has accepted all of it. @throws ServiceError 503 */
  sendText(reply: FastifyReply, owner: string, text: string | Buffer): FastifyReply {
    if (text.length <= largeFrom) return reply.send(text);
    const bytes = typeof text === 'string' ? Buffer.from(text) : text;
    if (!this.#sending.acquire(owner, bytes)) throw tooManyAnswers();
    const onProgress = watch(reply, () => this.#sending.release(bytes));
    return reply.header('content-length', bytes.length).send(inPieces([bytes], onProgress));
  }

  /** Pieces are read as fast as the connection accepts them. They count as much as can be held at once. */
  #sendPieces(reply: FastifyReply, owner: string, pieces: AsyncIterable<string>): void {
    if (!this.#budget.acquire(owner, heldByPieces)) throw tooManyAnswers();
    const onProgress = watch(reply, () => this.#budget.release(owner, heldByPieces));
    reply.send(inPieces(pieces, onProgress));
  }
}

/** Hands the connection to a stream, unless the client has disconnected or sent HEAD. */
function openStream({ request, reply }: Exchange<unknown>, { parts: stream }: StreamResponse): void {
  if (request.method === 'HEAD') {
    stream.abandon();
    reply.type(stream.contentType ?? 'text/plain').send('');
  } else if (request.raw.socket.destroyed) {
    stream.abandon();
    reply.hijack();
  } else {
    stream.open(request, reply);
    request.info.isStream = true;
  }
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

/**
 * A body in small pieces.
 * @param onProgress called when the next piece is requested, so when an earlier one was accepted
 */
function inPieces(texts: Iterable<Buffer> | AsyncIterable<string>, onProgress: () => void): Readable {
  async function* pieces(): AsyncGenerator<Buffer, void> {
    for await (const text of texts) {
      const bytes = typeof text === 'string' ? Buffer.from(text) : text;
      for (let at = 0; at < bytes.length; at += pieceBytes) {
        onProgress();
        yield bytes.subarray(at, at + pieceBytes);
      }
    }
  }
  return Readable.from(pieces(), { highWaterMark: 1 });
}

function serialized(body: unknown, shape: ResponseShape | undefined): string | Buffer {
  if (body instanceof JsonText) return body.payload();
  if (shape?.contentType !== undefined) return body as string;
  // Only fields of the declared schema are sent, so that a column can't leak.
  return JSON.stringify(shape?.schema === undefined ? body : pick(shape.schema, body));
}

/** The value reduced to the fields of its schema. If the schema allows additional properties, all fields are kept. */
function pick({ properties, additionalProperties, items, anyOf }: SchemaShape, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return items === undefined ? value : value.map((item) => pick(items, item));
  if (anyOf !== undefined) {
    // Usually an object or null. With several object schemas it is unknown which one applies.
    const objects = anyOf.filter((one) => one.properties !== undefined);
    return objects.length === 1 ? pick(objects[0]!, value) : value;
  }
  if (properties === undefined || (additionalProperties !== undefined && additionalProperties !== false)) return value;
  const source = value as Record<string, unknown>;
  return Object.fromEntries(
    Object.entries(properties)
      .filter(([name]) => source[name] !== undefined)
      .map(([name, property]) => [name, pick(property, source[name])]),
  );
}
