import type { IncomingHttpHeaders } from 'node:http';

import type { RequestOf, ResultOf, Route } from '../route.ts';
import { type Answer, answer, type HandlerContext, JsonPieces, JsonText, lowerCase, type Mount, type MountOptions } from './mount.ts';
import { bodyValidator, queryValidator, type Validator } from './validate.ts';

/** A request to a route from inside the process, before defaults are filled in. */
export interface LocalRequest {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  /** Headers by lower-case name. */
  readonly headers?: IncomingHttpHeaders;
}

/** Who makes a local request, and the signal that aborts when nobody waits for its result any more. */
export interface LocalCaller<Context> {
  readonly caller: Context;
  readonly signal: AbortSignal;
}

/** Calls the handler of a mounted route; undefined for an answer without a body. @throws ServiceError as the route does */
export type LocalCall<Context> = <R extends Route>(
  route: R,
  request: LocalRequest,
  by: LocalCaller<Context>,
) => Promise<ResultOf<R> | undefined>;

type AnyHandler<Context> = (request: never, context: HandlerContext<Context>) => unknown;

interface Row<Context, Traits> {
  readonly route: Route & Traits;
  readonly handler: AnyHandler<Context>;
  readonly query: Validator | undefined;
  readonly body: Validator | undefined;
}

/**
 * Wraps `mount` so that mounted routes can also be called inside the process, with the validation and the handler of
 * HTTP requests. The caller has been authenticated and counted already.
 * @param authorize refuses a caller that may not call the route, by a ServiceError
 */
export function mountLocally<Context, Traits extends object>(
  mount: Mount<Context, Traits>,
  authorize: (route: Route & Traits, caller: Context, headers: IncomingHttpHeaders) => void,
): { mount: Mount<Context, Traits>; call: LocalCall<Context> } {
  const rows = new Map<Route, Row<Context, Traits>>();
  return {
    mount(route, handler, options) {
      mount(route, handler, options);
      rows.set(route, { route, handler: handler as AnyHandler<Context>, ...validatorsOf(route, options) });
    },
    async call<R extends Route>(route: R, request: LocalRequest, { caller, signal }: LocalCaller<Context>) {
      const row = rows.get(route);
      if (row === undefined) throw new Error(`The route ${route.id} is not mounted.`);
      const { params = {}, query = {}, body, headers = {} } = request;
      authorize(row.route, caller, headers);
      const rawBody = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
      const input = { params: lowerCase({ ...params }), query: { ...query }, body };
      row.query?.(input.query);
      if (body !== undefined) row.body?.(input.body, rawBody?.length);
      const context: HandlerContext<Context> = { caller, headers, rawBody, origin: '', signal, endSignal: signal };
      return (await bodyOf(await row.handler(input as RequestOf<R> as never, context))) as ResultOf<R> | undefined;
    },
  };
}

function validatorsOf({ query, body, nullIsAbsent = false }: Route, { bodyFaults }: MountOptions = {}) {
  return {
    query: query && queryValidator(query),
    body: body && bodyValidator(body, { nullIsAbsent, ...(bodyFaults === undefined ? {} : { faultsOf: bodyFaults }) }),
  };
}

async function bodyOf(result: unknown): Promise<unknown> {
  const body = isAnswer(result) ? result.body : result;
  if (body instanceof JsonText) return JSON.parse(body.payload().toString());
  if (!(body instanceof JsonPieces)) return body;
  let text = '';
  for await (const piece of body.pieces) text += piece;
  return JSON.parse(text);
}

const Answered = answer({}).constructor;
const isAnswer = (result: unknown): result is Answer<unknown> => result instanceof Answered;
