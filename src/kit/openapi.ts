import Type, { type TSchema } from 'typebox';

import { commonErrors } from './errors.ts';
import type { ApiPart, ResponseShape, Route } from './route.ts';

type Json = Record<string, unknown>;

/** Descriptions of headers, by name. */
type Headers = Readonly<Record<string, string>>;

/** The parts of the description besides the routes. */
interface DescriptionOptions {
  title: string;
  version: string;
  description: string;
  parts: readonly ApiPart[];
  /** The path of a route, relative to the server. */
  pathOf(route: Route): string;
  /** The ways to authenticate, by name; each one is sufficient. */
  securitySchemes: Readonly<Record<string, Json>>;
  /** A paragraph about who may call a route, for its description. */
  rightsOf?(route: Route): string | undefined;
  /** Headers of a route's responses with this status, besides those that the route declares. */
  headersOf(route: Route, status: number): Headers;
}

/** Schemas that are referred to by name. */
type Names = ReadonlyMap<TSchema, string>;

/** Schemas and response headers that operations share; each is described once. */
interface Shared {
  names: Names;
  /** The bodies of which an optional field may be null. */
  lenient: ReadonlySet<TSchema | undefined>;
  /** Descriptions by name, filled while the operations are described. */
  headers: Map<string, string>;
}

/** The OpenAPI 3.1 description of a service, derived from its routes. */
export function describeApi({ title, version, description, parts, securitySchemes, ...where }: DescriptionOptions): Json {
  // Schemas that are described once and referred to by name.
  const schemas: Readonly<Record<string, TSchema>> = Object.assign({}, ...parts.map((part) => part.schemas));
  const names: Names = new Map(Object.entries(schemas).map(([name, schema]) => [schema, name]));
  const routes = parts.flatMap((part) => Object.values(part.routes));
  const lenient = new Set(routes.flatMap(({ nullIsAbsent, body, describedBody = body }) => (nullIsAbsent ? [describedBody] : [])));
  const shared: Shared = { names, lenient, headers: new Map() };
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    const path = where.pathOf(route);
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route, shared, where) };
  }
  return {
    openapi: '3.1.0',
    info: { title, version, description, license: { name: 'MIT', identifier: 'MIT' }, contact: { name: 'The maintainers of Baton' } },
    servers: [{ url: '/' }],
    tags: parts.flatMap(({ tag }) => tag ?? []),
    security: Object.keys(securitySchemes).map((name) => ({ [name]: [] })),
    paths,
    components: {
      securitySchemes,
      headers: Object.fromEntries([...shared.headers].map(([header, text]) => [header, { description: text, schema: { type: 'string' } }])),
      schemas: Object.fromEntries(
        Object.entries(schemas).map(([name, schema]) => [name, inline(schema, names, { self: name, nulls: lenient.has(schema) })]),
      ),
    },
  };
}

function operation(route: Route, shared: Shared, { headersOf, rightsOf }: Pick<DescriptionOptions, 'headersOf' | 'rightsOf'>): Json {
  const { id, tag, summary, access, params, query, headers = {}, responses } = route;
  return {
    operationId: id,
    tags: [tag],
    summary,
    description: [route.description ?? `${summary}.`, rightsOf?.(route) ?? []].flat().join('\n\n'),
    ...(access === 'public' ? { security: [] } : {}),
    parameters: [...parametersOf('path', params), ...parametersOf('query', query), ...Object.entries(headers).map(headerParameter)],
    ...bodyOf(route, shared),
    responses: Object.fromEntries(
      Object.entries(responses).map(([status, shape]) => [
        status,
        response(shape, Number(status), { ...headersOf(route, Number(status)), ...shape.headers }, shared),
      ]),
    ),
  };
}

function bodyOf(
  { body, describedBody = body, bodyOptional = false, bodyExample, nullIsAbsent = false, textTypes = [] }: Route,
  { names }: Shared,
): Json {
  if (describedBody === undefined) return {};
  const content = {
    schema: inline(describedBody, names, { nulls: nullIsAbsent }),
    ...(bodyExample === undefined ? {} : { example: bodyExample }),
  };
  const described = nullIsAbsent ? { description: 'Null for an optional field is the same as leaving it out.' } : {};
  const texts = textTypes.map((type) => [type, { schema: { type: 'string' } }]);
  return { requestBody: { ...described, required: !bodyOptional, content: { 'application/json': content, ...Object.fromEntries(texts) } } };
}

function response(
  { schema, description, contentType = 'application/json', otherTypes = {}, ...shape }: ResponseShape,
  status: number,
  headers: Headers,
  shared: Shared,
): Json {
  const example = shape.example ?? errorExample(status);
  const { [contentType]: other, ...others } = otherTypes;
  const usual = inline(schema, shared.names);
  const body = {
    schema: other === undefined ? usual : { anyOf: [usual, { type: 'object' }] },
    ...(example === undefined ? {} : { example }),
  };
  const textOf = (type: string) => (/^text\/(?!event-stream)/.test(type) ? { type: 'string' } : {});
  const texts = Object.entries(others).map(([type, text]) => [type, { schema: textOf(type), example: text }]);
  return {
    description,
    ...(Object.keys(headers).length === 0 ? {} : { headers: headerReferences(headers, shared) }),
    ...(schema === undefined ? {} : { content: { [contentType]: body, ...Object.fromEntries(texts) } }),
  };
}

function headerReferences(headers: Headers, shared: Shared): Json {
  return Object.fromEntries(
    Object.entries(headers).map(([name, text]) => {
      const described = shared.headers.get(name) ?? text;
      if (described !== text) throw new Error(`The header ${name} is described in two ways.`);
      shared.headers.set(name, text);
      return [name, { $ref: `#/components/headers/${name}` }];
    }),
  );
}

/** An example of an error with this status, from the table of codes. */
function errorExample(status: number): Json | undefined {
  const found = Object.values(commonErrors).find((entry) => entry.status === status);
  if (found === undefined) return undefined;
  const { code, meaning } = found;
  return { detail: `${meaning.split(/[;:.]/, 1)[0]}.`, code, field: null, status_code: status, request_id: '2s-1' };
}

function headerParameter([name, description]: [string, string]): Json {
  return { name, in: 'header', required: false, description, schema: { type: 'string' } };
}

function parametersOf(location: 'path' | 'query', schema: TSchema | undefined): Json[] {
  const { properties = {}, required = [] } = (schema ?? {}) as { properties?: Record<string, Json>; required?: string[] };
  return Object.entries(properties).map(([name, { description, example, ...rest }]) => ({
    name,
    in: location,
    // A parameter with a default is optional.
    required: required.includes(name) && rest.default === undefined,
    ...(description === undefined ? {} : { description }),
    ...(example === undefined ? {} : { example }),
    schema: inline(rest, new Map()),
  }));
}

/**
 * The fields of an object. Defaults are moved into the description text, because generators of typed clients make a
 * field with a `default` required in requests.
 */
function propertiesOf({ properties, required = [] }: ObjectShape, names: Names, nulls: boolean): Json {
  return Object.fromEntries(
    Object.entries(properties).map(([name, property]) => {
      const { default: otherwise, ...rest } = property;
      const text = `${rest.description ?? ''} Default: ${otherwise}.`.trim();
      const described = inline(otherwise === undefined ? property : { ...rest, description: text }, names, { nulls }) as Json;
      // Those that validation drops (`nullDropper`).
      const isDropped = nulls && !required.includes(name) && rest.type !== undefined && rest.type !== 'null';
      return [name, isDropped ? nullable(described) : described];
    }),
  );
}

function nullable(schema: Json): Json {
  if (schema.type === undefined) return { anyOf: [schema, { type: 'null' }] };
  const { enum: values } = schema as { enum?: unknown[] };
  return { ...schema, type: [schema.type, 'null'], ...(values === undefined ? {} : { enum: [...values, null] }) };
}

interface ObjectShape {
  readonly properties: Readonly<Record<string, Json>>;
  readonly required?: readonly string[];
}

/** `self`: the name of the schema itself; `nulls`: an optional field may be null. */
interface Inlining {
  readonly self?: string;
  readonly nulls?: boolean;
}

/** A schema as plain JSON, in which named schemas are references. */
function inline(schema: unknown, names: Names, { self, nulls = false }: Inlining = {}): unknown {
  if (Array.isArray(schema)) return schema.map((item) => inline(item, names));
  if (typeof schema !== 'object' || schema === null) return schema;
  const name = nameOf(schema as TSchema, names);
  if (name !== undefined && name !== self) return { $ref: `#/components/schemas/${name}` };
  return Object.fromEntries(
    Object.entries(schema).flatMap(([key, value]) => {
      if (key === 'example') return [['examples', [value]]];
      // This format is our own and wider than any registered one; the description says what it accepts.
      if (key === 'format' && value === 'timestamp') return [];
      if (key === 'properties') return [[key, propertiesOf(schema as ObjectShape, names, nulls)]];
      return [[key, inline(value, names, { nulls: nulls && key === 'items' })]];
    }),
  );
}

/** The name of a schema, also of the copy that `Type.Optional` makes. */
function nameOf(schema: TSchema, names: Names): string | undefined {
  if (names.has(schema) || !Type.IsOptional(schema)) return names.get(schema);
  const same = (named: TSchema) => Object.entries(named).every(([key, value]) => (schema as unknown as Json)[key] === value);
  return [...names].find(([named]) => same(named))?.[1];
}
