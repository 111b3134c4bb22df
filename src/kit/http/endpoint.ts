import type { TSchema } from 'typebox';

import type { Awaitable } from '../awaitable.ts';
import { type Fault, invalid, ServiceError } from '../errors.ts';
import type { RequestOf, ResultOf, Route } from '../route.ts';
import type { HandlerContext } from './exchange.ts';
import type { HttpResponse, JsonText, StreamResponse } from './response.ts';
import { bodyValidator, queryValidator, type Validator } from './validate.ts';

/** What a handler returns as the body: nothing where the response has none. */
// biome-ignore lint/suspicious/noConfusingVoidType: an operation that returns nothing can be a handler as it is.
type BodyOf<R extends Route> = undefined extends ResultOf<R> ? ResultOf<R> | void : ResultOf<R>;

export type Handler<R extends Route, Context> = (
  request: RequestOf<R>,
  context: HandlerContext<Context>,
) => Awaitable<BodyOf<R> | JsonText | HttpResponse<ResultOf<R>> | StreamResponse>;

/** Options of a mounted route. */
export interface MountOptions {
  /** Faults of a body beyond its schema. Called even if the schema is violated, so that the answer lists all faults at once. */
  bodyFaults?: (body: unknown) => readonly Fault[];
  /**
   * Returns the answer to a refused request, for routes with error bodies of their own; undefined: that of the service. `isRead`: the body was read, but does not have the form that the route takes.
   */
  refused?: (
    refusal: ServiceError,
    request: { readonly isRead: boolean; readonly body: unknown; readonly query: unknown },
  ) => HttpResponse<never> | undefined;
}

/** A route with its validators and its handler. */
export class Endpoint<Context> {
  readonly route: Route;
  readonly handler: (request: never, context: HandlerContext<Context>) => unknown;
  readonly successStatus: number;
  readonly refused: MountOptions['refused'];
  readonly #query: Validator | undefined;
  readonly #body: Validator | undefined;
  /** The query parameters that may be repeated: those whose schema is an array. */
  readonly #lists: ReadonlySet<string>;

  constructor(route: Route, handler: (request: never, context: HandlerContext<Context>) => unknown, options: MountOptions = {}) {
    this.route = route;
    this.handler = handler;
    this.refused = options.refused;
    this.successStatus = Number(Object.keys(route.responses).find((status) => status < '300'));
    this.#query = route.query && queryValidator(route.query);
    this.#body = route.body && bodyValidator(route.body, { nullIsAbsent: route.nullIsAbsent, faultsOf: options.bodyFaults });
    this.#lists = listsOf(route.query);
  }

  /**
   * Validates a request, in place: query parameters are converted and defaults are filled in.
   * @param size the body's length in bytes
   * @throws ServiceError 400
   */
  validate(query: Record<string, unknown>, body: unknown, size?: number): void {
    // Health probes may add arbitrary parameters, as may what leads people to a page. On other routes an unknown one is a mistake.
    if (this.route.forPeople) dropUnknown(query, this.route.query);
    if (this.#query !== undefined) this.#query(withLists(query, this.#lists));
    else if (this.route.access !== 'public' && !this.route.forPeople) requireNone(query);
    if (this.#body === undefined || (body === undefined && this.route.bodyOptional)) return;
    if (body === undefined) throw new ServiceError('VALIDATION_ERROR', 'A JSON body is required.');
    this.#body(body, size);
  }
}

function listsOf(query: TSchema | undefined): ReadonlySet<string> {
  const properties = Object.entries((query as { properties?: Record<string, { type?: string }> } | undefined)?.properties ?? {});
  return new Set(properties.filter(([, { type }]) => type === 'array').map(([name]) => name));
}

/** Makes a list of each parameter that is one. Refuses other repeated ones, and NUL, which PostgreSQL can't store in a text. */
function withLists(query: Record<string, unknown>, lists: ReadonlySet<string>): Record<string, unknown> {
  for (const [name, value] of Object.entries(query)) {
    if (lists.has(name)) query[name] = Array.isArray(value) ? value : [value];
    else if (Array.isArray(value)) throw invalid(name, `${name} is given more than once.`);
    if (String(value).includes('\0')) throw invalid(name, `${name} has a character that is not allowed.`);
  }
  return query;
}

function dropUnknown(query: Record<string, unknown>, schema: TSchema | undefined): void {
  const { properties = {} } = (schema ?? {}) as { properties?: Record<string, unknown> };
  for (const name of Object.keys(query)) if (!Object.hasOwn(properties, name)) delete query[name];
}

function requireNone(query: Record<string, unknown>): void {
  for (const name in query) throw invalid(name, `${name} is not a parameter of this request; it takes none.`);
}
