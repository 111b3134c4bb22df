import type { Static, TObject, TSchema } from 'typebox';

import { ApiError } from './client-errors.ts';
import type { Connection, ConnectionAnswer } from './connection.ts';
import type { Defaulted, ResultOf, Route } from './route.ts';

/** What a client needs of a route when it runs: the rest of a route is types, or the service's business. */
export interface Operation {
  readonly method: string;
  /** From the service's root, parameters in braces. */
  readonly path: string;
  /** It takes a body of JSON. */
  readonly body?: true;
  /** It takes an `Idempotency-Key`. */
  readonly idempotent?: true;
  /** The service may wait before it answers, as long as `wait_seconds` of the body says. */
  readonly waits?: true;
  /** It answers text that is not JSON. */
  readonly text?: true;
}

/** The operations of routes, by their names: what a client is made of, without schemas and the library that makes them. */
export function operationsOf(routes: Readonly<Record<string, Route>>, pathOf: (route: Route) => string): Record<string, Operation> {
  return Object.fromEntries(
    Object.entries(routes).map(([name, route]) => {
      const fields = (route.body as Partial<TObject> | undefined)?.properties ?? {};
      const success = Object.entries(route.responses).find(([status]) => status < '300')?.[1];
      return [
        name,
        {
          method: route.method,
          path: pathOf(route),
          ...(route.body === undefined ? {} : { body: true }),
          ...(route.headers !== undefined && 'Idempotency-Key' in route.headers ? { idempotent: true } : {}),
          ...('wait_seconds' in fields ? { waits: true } : {}),
          ...(success?.contentType === undefined ? {} : { text: true }),
        } satisfies Operation,
      ];
    }),
  );
}

type PropertiesOf<T> = T extends TObject<infer Properties> ? Properties : never;
type DefaultedNames<T extends TObject> = {
  [Name in keyof PropertiesOf<T>]: PropertiesOf<T>[Name] extends Defaulted ? Name : never;
}[keyof PropertiesOf<T>];
/** The type of a value before defaults are filled in. */
type Before<T extends TSchema> = T extends TObject
  ? Omit<Static<T>, DefaultedNames<T>> & Partial<Pick<Static<T>, DefaultedNames<T> & keyof Static<T>>>
  : Static<T>;

/** A part of the request: absent where the route does not declare it, optional where nothing in it is required. */
type Part<Name extends string, Schema, Widest> =
  Widest extends NonNullable<Schema>
    ? unknown
    : NonNullable<Schema> extends infer S extends TSchema
      ? Record<never, never> extends Before<S>
        ? { readonly [N in Name]?: Before<S> }
        : { readonly [N in Name]: Before<S> }
      : unknown;

/** The body as it is described where it says more than what is validated at once. */
type BodyOf<R extends Route> = TSchema extends NonNullable<R['describedBody']> ? R['body'] : R['describedBody'];

/** What a caller says of a request, before defaults. */
export type InputOf<R extends Route> = Part<'params', R['params'], TObject> &
  Part<'query', R['query'], TObject> &
  Part<'body', BodyOf<R>, TSchema>;

/** What a call says besides the request itself. */
export interface CallOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  readonly timeoutSeconds?: number;
  /** Made for each call by default, where the operation takes one; the same key makes a later call repeat the answer. */
  readonly idempotencyKey?: string;
}

/** A whole answer. */
export interface Answer<Body> {
  readonly status: number;
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Body;
  /** The body as it came. */
  readonly text: string;
}

type NotModified<R extends Route> = 304 extends keyof R['responses'] ? undefined : never;
type Request<R extends Route> = InputOf<R> & CallOptions;
type Call<R extends Route, Result> =
  Record<never, never> extends InputOf<R> ? (request?: Request<R>) => Result : (request: Request<R>) => Result;

/** An item of a page: what its only list holds. */
export type ItemOf<Page> = Page extends readonly (infer Item)[]
  ? Item
  : { [Name in keyof Page]: Page[Name] extends readonly (infer Item)[] ? Item : never }[keyof Page];

type Paged<R extends Route> =
  InputOf<R> extends { readonly query?: { offset?: number } }
    ? {
        /** Every page from the one asked for on: by `next_cursor` where the page has one, else by `offset`. */
        readonly pages: Call<R, AsyncGenerator<ResultOf<R>, void, undefined>>;
        /** Every item of every page. */
        readonly items: Call<R, AsyncGenerator<ItemOf<ResultOf<R>>, void, undefined>>;
      }
    : unknown;

/**
 * An operation as a function. It resolves to the body; `withResponse` to the whole answer, a 304 included.
 * Both reject with ApiError, NetworkError, TimeoutError, or the reason of the signal that was handed in.
 */
export type Method<R extends Route> = Call<R, Promise<ResultOf<R>>> & {
  readonly withResponse: Call<R, Promise<Answer<ResultOf<R> | NotModified<R>>>>;
} & Paged<R>;

/** One method for each route. */
export type Client<Routes extends Readonly<Record<string, Route>>> = { readonly [Name in keyof Routes]: Method<Routes[Name]> };

/** A request as it comes at run time; the types above have said what it holds. */
interface AnyRequest extends CallOptions {
  readonly params?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
}

/** A client of the routes over a connection: `client.claimPacket({ params: { id }, body: { agent_id } })`. */
export function createClient<Routes extends Readonly<Record<string, Route>>>(
  operations: Readonly<Record<keyof Routes & string, Operation>>,
  connection: Connection,
): Client<Routes> {
  const methods = Object.entries<Operation>(operations).map(([name, operation]) => [name, methodOf(operation, connection)]);
  return Object.fromEntries(methods) as Client<Routes>;
}

function methodOf(operation: Operation, connection: Connection): unknown {
  const withResponse = (request: AnyRequest = {}) => call(operation, connection, request);
  const method = async (request?: AnyRequest) => {
    const answer = await withResponse(request);
    if (answer.status === 304) throw new ApiError(304, '{"detail":"It has not changed; withResponse gives this answer."}', answer.headers);
    return answer.body;
  };
  const pages = (request?: AnyRequest) => readPages(withResponse, request);
  return Object.assign(method, {
    withResponse,
    pages,
    async *items(request?: AnyRequest) {
      for await (const page of pages(request)) yield* itemsOf(page);
    },
  });
}

async function call(operation: Operation, connection: Connection, request: AnyRequest): Promise<Answer<unknown>> {
  const { method, idempotent = false } = operation;
  const key = request.idempotencyKey ?? (idempotent ? connection.newIdempotencyKey() : undefined);
  const answer = await connection.send({
    method,
    path: pathOf(operation, request.params ?? {}),
    query: request.query ?? {},
    headers: { ...request.headers, ...(key === undefined ? {} : { 'idempotency-key': key }) },
    ...(operation.body ? { body: request.body ?? {} } : {}),
    repeatable: method === 'GET' || key !== undefined,
    ...(operation.waits ? { waitSeconds: Number((request.body as { wait_seconds?: number }).wait_seconds ?? 0) } : {}),
    signal: request.signal,
    timeoutSeconds: request.timeoutSeconds,
  });
  return { ...answer, body: bodyOf(operation, answer) };
}

function pathOf({ path }: Operation, params: Readonly<Record<string, unknown>>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = params[name];
    // `/packets/` and `/packets/.` are other places than a packet of that name.
    if (typeof value !== 'string' || ['', '.', '..'].includes(value)) throw new TypeError(`${name} must be an id.`);
    return encodeURIComponent(value);
  });
}

function bodyOf({ text }: Operation, answer: ConnectionAnswer): unknown {
  if (answer.text === '') return undefined;
  if (text) return answer.text;
  try {
    return JSON.parse(answer.text);
  } catch {
    throw new ApiError(answer.status, '{"detail":"What answered does not speak the JSON of this service."}', answer.headers);
  }
}

interface Page {
  readonly next_cursor?: string | null;
  readonly total?: number;
}

async function* readPages(
  withResponse: (request: AnyRequest) => Promise<Answer<unknown>>,
  request: AnyRequest = {},
): AsyncGenerator<unknown, void, undefined> {
  let query = { ...request.query };
  let offset = Number(query.offset ?? 0);
  for (;;) {
    const { body, headers } = await withResponse({ ...request, query });
    yield body;
    const { next_cursor, total = Number(headers['x-total-count'] ?? Number.POSITIVE_INFINITY) } = body as Page;
    const { length } = itemsOf(body);
    offset += length;
    if (next_cursor === null || length === 0 || (next_cursor === undefined && offset >= total)) return;
    const { offset: _, ...rest } = query;
    query = next_cursor === undefined ? { ...query, offset } : { ...rest, cursor: next_cursor };
  }
}

function itemsOf(page: unknown): readonly unknown[] {
  if (Array.isArray(page)) return page;
  return Object.values(page as object).find(Array.isArray) ?? [];
}
