import type { Static, TObject, TSchema } from 'typebox';

/** One answer of a route: its schema (none where there is no body), and what it means. */
export interface ResponseShape {
  readonly schema?: TSchema;
  readonly description: string;
  /** Where the body is not JSON. */
  readonly contentType?: string;
  /** An example of the body, for the API description. */
  readonly example?: unknown;
  /** Headers of its own, by name, and what they say. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** An HTTP operation as a value: validation, handler types, the API description and the typed client derive from it. */
export interface Route<
  Params extends TObject = TObject,
  Query extends TObject = TObject,
  Body extends TSchema = TSchema,
  Responses extends Readonly<Record<number, ResponseShape>> = Readonly<Record<number, ResponseShape>>,
  Described extends TSchema = TSchema,
> {
  /** The operation's name: unique, and the method's name in the client. */
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** The path below the API's prefix, parameters in braces. */
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /** Who may call it: `public` is anyone; what every other word asks for, the service's admission knows. */
  readonly access: string;
  readonly params?: Params;
  readonly query?: Query;
  readonly body?: Body;
  /** The body may be left out. */
  readonly bodyOptional?: boolean;
  /** Null for an optional field of the body is as if it were left out. */
  readonly nullIsAbsent?: boolean;
  readonly bodyExample?: unknown;
  /** The body as the API description and the client show it, where `body` leaves its items to be judged one by one. */
  readonly describedBody?: Described;
  /** Media types that it takes besides JSON. Such a body is a text, and `body` must allow one. */
  readonly textTypes?: readonly string[];
  /** Request headers it reads, by their documented names. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly responses: Responses;
}

/**
 * A service's `defineRoute`, which only gives a route its exact type.
 * @typeParam Traits what the service's routes say besides: the words of `access`, and what its admission looks at
 */
export function routeDefiner<Traits extends object>() {
  return <
    const Params extends TObject,
    const Query extends TObject,
    const Body extends TSchema,
    const Responses extends Readonly<Record<number, ResponseShape>>,
    const Described extends TSchema,
  >(
    route: Route<Params, Query, Body, Responses, Described> & Traits,
  ): Route<Params, Query, Body, Responses, Described> & Traits => route;
}

/** Declares a route without traits of a service. */
export const defineRoute = routeDefiner<{ access: string }>();

/** A schema that gives an absent value a default: a handler always finds it, a caller may leave it out. */
export interface Defaulted {
  readonly default: unknown;
}

type StaticOr<T, Otherwise> = T extends TSchema ? Static<T> : Otherwise;

/** What a route's handler is given: the request after its defaults. */
export interface RequestOf<R extends Route> {
  params: StaticOr<NonNullable<R['params']>, Record<string, never>>;
  query: StaticOr<NonNullable<R['query']>, Record<string, never>>;
  body: StaticOr<NonNullable<R['body']>, undefined>;
}

type SuccessStatus<Responses> = Extract<keyof Responses, 200 | 201 | 202 | 204>;

type BodyOf<Shape> = Shape extends { readonly schema: infer Schema extends TSchema } ? Static<Schema> : undefined;

/** The body of a route's success. */
export type ResultOf<R extends Route> = BodyOf<R['responses'][SuccessStatus<R['responses']>]>;
