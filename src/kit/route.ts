import type { Static, TObject, TSchema } from 'typebox';

/** One response of a route: its description, and its schema unless it has no body. */
export interface ResponseShape {
  readonly schema?: TSchema;
  readonly description: string;
  /** The media type, if it is not JSON. */
  readonly contentType?: string;
  /** Texts that the handler may answer instead: an example for each media type. For JSON: an object of any form. */
  readonly otherTypes?: Readonly<Record<string, string>>;
  /** An example of the body, for the API description. */
  readonly example?: unknown;
  /** Descriptions of its headers, by name. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A route as it is declared: the table that it stands in gives it its id and its tag. */
export interface Declared<
  Params extends TObject = TObject,
  Query extends TObject = TObject,
  Body extends TSchema = TSchema,
  Responses extends Readonly<Record<number, ResponseShape>> = Readonly<Record<number, ResponseShape>>,
  Described extends TSchema = TSchema,
> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** The path below the API's prefix, with parameters in braces. */
  readonly path: string;
  readonly summary: string;
  readonly description?: string;
  /** Who may call it: `public` is everyone; the service's admission defines all other values. */
  readonly access: string;
  readonly params?: Params;
  readonly query?: Query;
  readonly body?: Body;
  /** The body may be left out. */
  readonly bodyOptional?: boolean;
  /**
   * People open it by an address that mail programs and others may have changed: parameters that it does not know and a slash at its
   * end are ignored.
   */
  readonly forPeople?: boolean;
  /** Null for an optional field of the body is the same as leaving it out. */
  readonly nullIsAbsent?: boolean;
  readonly bodyExample?: unknown;
  /** The body for the API description and the client, if `body` leaves the validation of its items to the handler. */
  readonly describedBody?: Described;
  /** Media types it accepts besides JSON. Such a body is a string, which `body` must allow. */
  readonly textTypes?: readonly string[];
  /** Descriptions of the request headers it reads, by name. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly responses: Responses;
}

/** An HTTP operation as a value. Validation, handler types, the API description and the typed client derive from it. */
export interface Route<
  Params extends TObject = TObject,
  Query extends TObject = TObject,
  Body extends TSchema = TSchema,
  Responses extends Readonly<Record<number, ResponseShape>> = Readonly<Record<number, ResponseShape>>,
  Described extends TSchema = TSchema,
> extends Declared<Params, Query, Body, Responses, Described>,
    Named {}

/** What a part of an API declares, which its description and its client are made of. */
export interface ApiPart {
  /** The tag of its routes in the description, unless another part has it. */
  readonly tag?: { readonly name: string; readonly description: string };
  /** Its routes, by operation name. */
  readonly routes: Readonly<Record<string, Route>>;
  /** The schemas that the description names, so that routes refer to them. */
  readonly schemas: Readonly<Record<string, TSchema>>;
}

/** The type of the routes of all parts, by operation name. */
export type RoutesOf<Parts extends readonly ApiPart[]> = Parts extends readonly [
  infer First extends ApiPart,
  ...infer Rest extends readonly ApiPart[],
]
  ? First['routes'] & RoutesOf<Rest>
  : unknown;

/** The types of the schemas of all parts, by name. */
export type SchemasOf<Parts extends readonly ApiPart[]> = Parts extends readonly [
  infer First extends ApiPart,
  ...infer Rest extends readonly ApiPart[],
]
  ? { readonly [Name in keyof First['schemas']]: Static<First['schemas'][Name]> } & SchemasOf<Rest>
  : unknown;

/** The routes of all parts, by operation name. */
export const routesOf = <const Parts extends readonly ApiPart[]>(parts: Parts): RoutesOf<Parts> =>
  Object.assign({}, ...parts.map(({ routes }) => routes));

/** What a table gives to its routes. */
export interface Named {
  /** The unique name of the operation, also of the client's method. */
  readonly id: string;
  /** The group of the operation in the API description. */
  readonly tag: string;
}

/** Names the routes of a table by their keys. */
export function routeTable<const Table extends Readonly<Record<string, Declared>>>(tag: string, table: Table) {
  return Object.fromEntries(Object.entries(table).map(([id, route]) => [id, { id, tag, ...route }])) as unknown as {
    readonly [Id in keyof Table]: Table[Id] & Named;
  };
}

/**
 * Creates a service's `defineRoute`, which returns its argument with its exact type.
 * @typeParam Traits the service's own properties of routes: the values of `access`, and what its admission reads
 */
export function routeDefiner<Traits extends object>() {
  return <
    const Params extends TObject,
    const Query extends TObject,
    const Body extends TSchema,
    const Responses extends Readonly<Record<number, ResponseShape>>,
    const Described extends TSchema,
  >(
    route: Declared<Params, Query, Body, Responses, Described> & Traits,
  ): Declared<Params, Query, Body, Responses, Described> & Traits => route;
}

/** Declares a route without traits of a particular service. */
export const defineRoute = routeDefiner<{ access: string } & Named>();

/** A schema with a default: callers may leave the value out, handlers always get it. */
export interface Defaulted {
  readonly default: unknown;
}

/** A text of comma-separated items: handlers get the text, clients give an item or an array of them. */
export interface CommaList<Item extends string> {
  /** Exists for types only. */
  readonly '~item': Item;
}

type StaticOr<T, Otherwise> = T extends TSchema ? Static<T> : Otherwise;

/** The request that a handler gets, with defaults filled in. */
export interface RequestOf<R extends Route> {
  params: StaticOr<NonNullable<R['params']>, Record<string, never>>;
  query: StaticOr<NonNullable<R['query']>, Record<string, never>>;
  body: StaticOr<NonNullable<R['body']>, undefined>;
}

type SuccessStatus<Responses> = Extract<keyof Responses, 200 | 201 | 202 | 204>;

type BodyOf<Shape> = Shape extends { readonly schema: infer Schema extends TSchema } ? Static<Schema> : undefined;

/** The body of a route's successful response. */
export type ResultOf<R extends Route> = BodyOf<R['responses'][SuccessStatus<R['responses']>]>;
