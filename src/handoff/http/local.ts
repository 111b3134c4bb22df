import { Endpoint } from '../../kit/http/endpoint.ts';
import type { HandlerContext } from '../../kit/http/exchange.ts';
import type { Mount } from '../../kit/http/mount.ts';
import { HttpResponse, JsonText, largeFrom, TextPieces } from '../../kit/http/response.ts';
import { tooManyAnswers } from '../../kit/http/sender.ts';
import { readJson } from '../../kit/json.ts';
import type { MemoryBudget } from '../../kit/memory-budget.ts';
import type { ResultOf, Route } from '../../kit/route.ts';
import type { Turns } from '../../kit/turns.ts';
import { readParams } from './handlers.ts';

/** A request to a route from inside the process, before defaults are filled in. */
interface LocalRequest {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  /** Headers by lower-case name. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Who acts. A request of HTTP names it in a header. */
  readonly actor?: string | undefined;
}

/** Who makes a local request, and the signal that aborts when nobody waits for its result any more. */
export interface LocalCaller<Context> {
  readonly caller: Context;
  readonly signal: AbortSignal;
  /** The protocol by which the caller came, as histories name it; left out: the API. */
  readonly via?: string;
}

/** Calls the handler of a mounted route; undefined for an answer without a body. @throws ServiceError as the route does */
export type LocalCall<Context> = <R extends Route>(
  route: R,
  request: LocalRequest,
  by: LocalCaller<Context>,
) => Promise<ResultOf<R> | undefined>;

interface LocalDependencies<Context, Traits> {
  /** Refuses a caller that may not call the route, by a ServiceError. */
  readonly authorize: (route: Route & Traits, caller: Context, actor: string | undefined) => void;
  readonly turns: Turns;
  /** What is read for a call counts against it until it is parsed. */
  readonly answers: MemoryBudget;
  /** On whose behalf the call takes its turns, and the owner in the budget. */
  readonly ownerOf: (caller: Context) => { readonly turns: unknown; readonly answers: string };
}

/**
 * Wraps `mount` so that mounted routes can also be called inside the process, with the validation and the handler of
 * HTTP requests. The caller has been authenticated and counted already. A call takes a turn for its handler, and another
 * one to read what the handler returned, which counts against the limit on large answers until then. Afterwards the answer to
 * the caller's own request counts.
 */
export function mountLocally<Context, Traits extends object>(
  mount: Mount<Context, Traits>,
  { authorize, turns, answers, ownerOf }: LocalDependencies<Context, Traits>,
): { mount: Mount<Context, Traits>; call: LocalCall<Context> } {
  const endpoints = new Map<Route, Endpoint<Context>>();
  return {
    mount(route, handler, options) {
      mount(route, handler, options);
      endpoints.set(route, new Endpoint<Context>(route, handler, options));
    },
    async call<R extends Route>(route: R, request: LocalRequest, { caller, signal, via }: LocalCaller<Context>) {
      const endpoint = endpoints.get(route);
      if (endpoint === undefined) throw new Error(`The route ${route.id} is not mounted.`);
      const { params = {}, query = {}, body, actor } = request;
      // As those of a request: Node reads headers as Latin-1, and handlers decode UTF-8 from it.
      const texts = Object.entries(request.headers ?? {});
      const headers = Object.fromEntries(texts.map(([name, text]) => [name, Buffer.from(text).toString('latin1')]));
      authorize(route as R & Traits, caller, actor);
      const owner = ownerOf(caller);
      await turns.next(owner.turns);
      const rawBody = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
      const input = { params: readParams({ ...params }), query: { ...query }, body };
      endpoint.validate(input.query, body, rawBody?.length);
      const context: HandlerContext<Context> = { caller, headers, rawBody, origin: '', signal, endSignal: signal, via, actor };
      const result = await endpoint.handler(input as never, context);
      const returned = result instanceof HttpResponse ? result.parts.body : result;
      if (returned instanceof TextPieces) throw new Error(`The route ${route.id} answers in pieces.`);
      if (!(returned instanceof JsonText)) return returned as ResultOf<R> | undefined;
      const text = returned.payload();
      const held = text.length > largeFrom ? text.length : 0;
      if (!answers.acquire(owner.answers, held)) throw tooManyAnswers();
      try {
        await turns.next(owner.turns, { first: true });
        return readJson<ResultOf<R>>(text.toString());
      } finally {
        answers.release(owner.answers, held);
      }
    },
  };
}
