import type { FastifyReply, FastifyRequest } from 'fastify';

/** Responses of more than this many bytes are counted and timed; for smaller ones the overhead would be measurable. */
export const largeFrom = 64 * 1024;

/** JSON that is already serialized and is sent unchanged. */
export class JsonText {
  #text: string | Buffer;

  /** @param octets the text's length in UTF-8, if known. If it equals `text.length`, the text is ASCII and takes the faster Latin-1 conversion. */
  constructor(text: string | Buffer, octets?: number) {
    this.#text = typeof text === 'string' && octets === text.length ? Buffer.from(text, 'latin1') : text;
  }

  /** The text to send. A long text is converted to bytes once, and all responses share them. */
  payload(): string | Buffer {
    if (typeof this.#text === 'string' && this.#text.length > largeFrom) this.#text = Buffer.from(this.#text);
    return this.#text;
  }
}

/** A text, such as JSON, that is read in pieces while it is sent, because all of it may not fit into memory. */
export class TextPieces {
  readonly pieces: AsyncIterable<string>;

  /** @param pieces each of them of about a MiB at most */
  constructor(pieces: AsyncIterable<string>) {
    this.pieces = pieces;
  }
}

/** The parts of a response. */
export interface ResponseOptions<T> {
  /** By default the success status of the route. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  /** A 204 has none. */
  readonly body?: T | JsonText | TextPieces;
}

/** A response with a status or headers of its own. A class, so that a body with a field called `status` is not mistaken for one. */
export class HttpResponse<T> {
  readonly parts: ResponseOptions<T>;

  constructor(parts: ResponseOptions<T>) {
    this.parts = parts;
  }
}

interface StreamOptions {
  /** Opens the stream. */
  open(request: FastifyRequest, reply: FastifyReply): void;
  /** Called instead if the client is gone or sent HEAD. */
  abandon(): void;
  readonly contentType?: string;
}

/** A response that takes over the connection of an admitted and validated request. */
export class StreamResponse {
  readonly parts: StreamOptions;

  constructor(parts: StreamOptions) {
    this.parts = parts;
  }
}
