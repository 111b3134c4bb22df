import type { TSchema } from 'typebox';

import { type ErrorCode, errorCodes } from './errors.ts';
import type { Route } from './route.ts';

type Json = Record<string, unknown>;

/** What the description says besides the routes. */
export interface DescriptionParts {
  title: string;
  version: string;
  description: string;
  server: string;
  tags: readonly { name: string; description: string }[];
  routes: Readonly<Record<string, Route>>;
  /** Schemas that are named once and referred to. */
  schemas: Readonly<Record<string, TSchema>>;
  /** Where a route is found, relative to the server. */
  pathOf(route: Route): string;
}

/** The OpenAPI 3.1 description of a service, made from its routes. */
export function describeApi({ title, version, description, server, tags, routes, schemas, pathOf }: DescriptionParts): Json {
  const names = new Map<TSchema, string>(Object.entries(schemas).map(([name, schema]) => [schema, name]));
  const paths: Record<string, Json> = {};
  for (const route of Object.values(routes)) {
    const path = pathOf(route);
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route, names) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title,
      version,
      description,
      license: { name: 'MIT', identifier: 'MIT' },
      contact: { name: 'Baton', url: 'https://example.com/baton' },
    },
    servers: [{ url: server }],
    tags,
    security: [{ apiKey: [] }],
    paths,
    components: {
      securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key', description: 'An API key of a tenant.' } },
      schemas: Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, inline(schema, names, name)])),
    },
  };
}

function operation(route: Route, names: Map<TSchema, string>): Json {
  const { id, tag, summary, access, params, query, headers, body, bodyOptional, bodyExample, responses } = route;
  return {
    operationId: id,
    tags: [tag],
    summary,
    description: route.description ?? `${summary}.`,
    ...(access === 'public' ? { security: [] } : {}),
    parameters: [...parametersOf('path', params), ...parametersOf('query', query), ...Object.entries(headers ?? {}).map(([name, text]) => ({
      name,
      in: 'header',
      required: false,
      description: text,
      schema: { type: 'string' },
    }))],
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: !bodyOptional,
            content: { 'application/json': { schema: inline(body, names), ...(bodyExample === undefined ? {} : { example: bodyExample }) } },
          },
        }),
    responses: Object.fromEntries(Object.entries(responses).map(([status, shape]) => {
      const contentType = shape.contentType ?? 'application/json';
      const schema = shape.schema === undefined ? undefined : inline(shape.schema, names);
      const example = shape.example ?? errorExample(Number(status));
      return [status, {
        description: shape.description,
        ...(schema === undefined ? {} : { content: { [contentType]: { schema, ...(example === undefined ? {} : { example }) } } }),
      }];
    })),
  };
}

function errorExample(status: number): Json | undefined {
  if (status < 400) return undefined;
  const [code, { meaning }] = Object.entries(errorCodes).find(([, entry]) => entry.status === status) as [ErrorCode, { meaning: string }];
  return { detail: meaning, code, field: null, status_code: status, request_id: '2s-1' };
}

function parametersOf(place: 'path' | 'query', schema: TSchema | undefined): Json[] {
  const { properties = {}, required = [] } = (schema ?? {}) as { properties?: Record<string, Json>; required?: string[] };
  return Object.entries(properties).map(([name, { description, example, ...rest }]) => ({
    name,
    in: place,
    required: required.includes(name),
    ...(description === undefined ? {} : { description }),
    ...(example === undefined ? {} : { example }),
    schema: rest,
  }));
}

/** A schema as plain JSON, with every named schema inside it as a reference. `self` is the name it is defined under. */
function inline(schema: unknown, names: Map<TSchema, string>, self?: string): unknown {
  if (Array.isArray(schema)) return schema.map((item) => inline(item, names));
  if (typeof schema !== 'object' || schema === null) return schema;
  const name = names.get(schema as TSchema);
  if (name !== undefined && name !== self) return { $ref: `#/components/schemas/${name}` };
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => {
      if (key === 'example') return ['examples', [value]];
      if (key === 'format' && value === 'timestamp') return [key, 'date-time'];
      return [key, inline(value, names)];
    }),
  );
}
