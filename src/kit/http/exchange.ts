import type { FastifyReply, FastifyRequest } from 'fastify';

import type { Route } from '../route.ts';
import { endSignalOf, signalOf } from './disconnect.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Null for requests that match no mounted route. */
    exchange: Exchange<unknown> | null;
  }
}

/** What a handler gets besides the parts of the request. */
export interface HandlerContext<Context> {
  readonly caller: Context;
  readonly headers: FastifyRequest['headers'];
  /** The body's bytes as received, if the request has a body. */
  readonly rawBody: Buffer | undefined;
  /** The origin by which the client reached the service, such as `https://example.com`; empty for a call inside the process. */
  readonly origin: string;
  /** Aborts when the connection closes before the response; not when the client only ends its sending half. Created on first use. */
  readonly signal: AbortSignal;
  /** Also aborts when the client ends its sending half. For responses that must not be lost, such as work that is handed out once. */
  readonly endSignal: AbortSignal;
  /** The protocol of a call inside the process, such as `a2a`; undefined for a request of HTTP. */
  readonly via: string | undefined;
  /** Who acts by a call inside the process; a request of HTTP may name it in a header. */
  readonly actor: string | undefined;
}

/** A request to a mounted route, from its admission to its response. V8 makes a map for each object literal with accessors, so this is a class. */
export class Exchange<Context> implements HandlerContext<Context> {
  readonly route: Route;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** Set by admission. */
  caller!: Context;
  rawBody: Buffer | undefined;
  /** Why the caller was not admitted, if the route answers that itself. */
  notAdmitted: unknown;
  /** Why the body was refused. */
  refusal: unknown;
  readonly via = undefined;
  readonly actor = undefined;
  /** The bytes that this request holds of the memory budget for large bodies. */
  held = 0;
  /** Whether its handler has begun. */
  isHandled = false;

  constructor(route: Route, request: FastifyRequest, reply: FastifyReply) {
    this.route = route;
    this.request = request;
    this.reply = reply;
  }

  /** The owner to whom the memory budgets charge this request. */
  get owner(): string {
    return this.request.info.caller ?? '';
  }

  get headers(): FastifyRequest['headers'] {
    return this.request.headers;
  }

  get origin(): string {
    return `${this.request.protocol}://${this.request.host}`;
  }

  get signal(): AbortSignal {
    return signalOf(this.reply);
  }

  get endSignal(): AbortSignal {
    return endSignalOf(this.request, this.reply);
  }
}
