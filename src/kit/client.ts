import type { Static, TObject, TSchema } from 'typebox';
import { ApiError } from './client-errors.ts';
import { quotedListOf } from './comma-list.ts';
import { type Connection, type ConnectionAnswer, malformed } from './connection.ts';
import { readJson } from './json.ts';
import type { CommaList, Defaulted, ResultOf, Route } from './route.ts';

/** The part of a route that a client needs at run time. */
export interface Operation {
  readonly method: string;
  /** The path from the service's root, with parameters in braces. */
  readonly path: string;
  /** The operation takes a JSON body. */
  readonly body?: true;
  /** The operation accepts `Idempotency-Key`. */
  readonly idempotent?: true;
  /** The service may wait up to `wait_seconds`, a field of the body or query, before it answers. */
  readonly waits?: true;
  /** The response is text other than JSON. */
  readonly text?: true;
}

/** The operations of routes, by name. They need neither the schemas nor the schema library, so that clients load fast. */
export function operationsOf(routes: Readonly<Record<string, Route>>, pathOf: (route: Route) => string): Record<string, Operation> {
  return Object.fromEntries(
    Object.entries(routes).map(([name, route]) => {
      const fields = { ...(route.body as Partial<TObject> | undefined)?.properties, ...route.query?.properties };
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
type CommaLists<T extends TObject> = {
  [Name in keyof PropertiesOf<T> as PropertiesOf<T>[Name] extends CommaList<string>
    ? Name
    : never]?: PropertiesOf<T>[Name] extends CommaList<infer Item> ? Item | readonly Item[] | undefined : never;
};
/** The type of a value before defaults are filled in, and comma lists are joined. */
type Before<T extends TSchema> = T extends TObject
  ? Omit<Static<T>, DefaultedNames<T> | keyof CommaLists<T>> &
      Partial<Pick<Static<T>, DefaultedNames<T> & keyof Static<T>>> &
      ([keyof CommaLists<T>] extends [never] ? unknown : CommaLists<T>)
  : Static<T>;

/** A part of the request: absent if the route does not declare it, optional if it has no required field. */
type Part<Name extends string, Schema, Widest> =
  Widest extends NonNullable<Schema>
    ? unknown
    : NonNullable<Schema> extends infer S extends TSchema
      ? Record<never, never> extends Before<S>
        ? { readonly [N in Name]?: Before<S> }
        : { readonly [N in Name]: Before<S> }
      : unknown;

/** The described body if the route has one, since it is more exact than the validated one. */
type BodyOf<R extends Route> = TSchema extends NonNullable<R['describedBody']> ? R['body'] : R['describedBody'];

/** The caller's input to a route, before defaults are filled in. */
export type InputOf<R extends Route> = Part<'params', R['params'], TObject> &
  Part<'query', R['query'], TObject> &
  Part<'body', BodyOf<R>, TSchema>;

/** Options of a call besides the request itself. */
export interface CallOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  readonly timeoutSeconds?: number;
  /** Generated for each call by default if the operation accepts one. A later call with the same key gets the same answer. */
  readonly idempotencyKey?: string;
}

/** A complete response. */
export interface Answer<Body> {
  readonly status: number;
  /** Headers by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Body;
  /** The body as received. */
  readonly text: string;
}

type NotModified<R extends Route> = 304 extends keyof R['responses'] ? undefined : never;
type Request<R extends Route> = InputOf<R> & CallOptions;
type Call<R extends Route, Result> =
  Record<never, never> extends InputOf<R> ? (request?: Request<R>) => Result : (request: Request<R>) => Result;

/** An item of a page: an element of its only list. */
export type ItemOf<Page> = Page extends readonly (infer Item)[]
  ? Item
  : { [Name in keyof Page]: Page[Name] extends readonly (infer Item)[] ? Item : never }[keyof Page];

type Paged<R extends Route> =
  InputOf<R> extends { readonly query?: { offset?: number; cursor?: string } }
    ? {
        /** All pages from the requested one on, by `next_cursor` if the page has one, else by `offset`. */
        readonly pages: Call<R, AsyncGenerator<ResultOf<R>, void, undefined>>;
        /** All items of all pages. */
        readonly items: Call<R, AsyncGenerator<ItemOf<ResultOf<R>>, void, undefined>>;
      }
    : unknown;

/**
 * An operation as a function. It resolves to the body; `withResponse` resolves to the complete response, also for 304.
 * Both reject with ApiError, NetworkError, TimeoutError, or the reason of the given signal.
 */
type Method<R extends Route> = Call<R, Promise<ResultOf<R>>> & {
  readonly withResponse: Call<R, Promise<Answer<ResultOf<R> | NotModified<R>>>>;
} & Paged<R>;

/** One method for each route. */
export type Client<Routes extends Readonly<Record<string, Route>>> = { readonly [Name in keyof Routes]: Method<Routes[Name]> };

/** A request at run time, when the types above no longer apply. */
interface AnyRequest extends CallOptions {
  readonly params?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
}

/** A client of the routes over a connection: `client.getThing({ params: { id } })`. */
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
    if (answer.status === 304)
      throw new ApiError(304, '{"detail":"The resource has not changed. Use withResponse to read a 304."}', answer.headers);
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
    query: joined(request.query ?? {}),
    headers: { ...request.headers, ...(key === undefined ? {} : { 'idempotency-key': key }) },
    ...(operation.body ? { body: request.body ?? {} } : {}),
    repeatable: method === 'GET' || key !== undefined,
    ...(operation.waits
      ? { waitSeconds: Number((operation.body ? (request.body as AnyRequest['query']) : request.query)?.wait_seconds ?? 0) }
      : {}),
    signal: request.signal,
    timeoutSeconds: request.timeoutSeconds,
  });
  return { ...answer, body: bodyOf(operation, answer) };
}

/** The query with its comma lists as texts. */
function joined(query: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(query).map(([name, value]) => [name, Array.isArray(value) ? quotedListOf(value) : value]));
}

function pathOf({ path }: Operation, params: Readonly<Record<string, unknown>>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = params[name];
    // An empty id, `.` or `..` would change the path itself.
    if (typeof value !== 'string' || ['', '.', '..'].includes(value)) throw new TypeError(`${name} must be an id.`);
    return encodeURIComponent(value);
  });
}

function bodyOf({ text }: Operation, answer: ConnectionAnswer): unknown {
  if (answer.text === '') return undefined;
  // An operation with several formats answers with text if the caller asked for it.
  if (text || /^text\//.test(answer.headers['content-type'] ?? '')) return answer.text;
  try {
    return readJson(answer.text);
  } catch {
    throw malformed(answer, 'The response is not JSON. Check that the base URL leads to the service.');
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
