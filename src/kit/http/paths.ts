import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

import type { Awaitable } from '../awaitable.ts';
import { ServiceError } from '../errors.ts';
import type { Route } from '../route.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** For a request that matches no mounted route: one of its path with another method, or without the slash at the end. */
    routeOfPath: Route | null;
  }
}

/** The mounted paths and their methods. */
export type Paths = ReturnType<typeof createPaths>;

interface KnownPath {
  readonly pattern: RegExp;
  /** The first route that was mounted there. */
  readonly route: Route;
  readonly methods: string[];
}

/**
 * Creates the table of paths, and has the application answer requests without a route from it: 405 with `Allow` for a
 * known path, else 404.
 * @param admitUnrouted runs before such an answer, unless the path is public
 */
export function createPaths(app: FastifyInstance, admitUnrouted: (request: FastifyRequest, reply: FastifyReply) => Awaitable<unknown>) {
  const paths = new Map<string, KnownPath>();
  let longestFixedPath = 0;
  // Paths that are not routes of the API, such as the explorers, only take GET.
  const others = new Set<string>();
  app.addHook('onRoute', ({ method, url }) => {
    if (method === 'GET') others.add(url);
  });
  const find = (path: string) => paths.get(path) ?? [...paths.values()].find(({ pattern }) => pattern.test(path));
  const isKnown = (path: string) => find(path) !== undefined || others.has(path);

  app.decorateRequest('routeOfPath', null);
  app.setNotFoundHandler(async (request, reply) => {
    const path = pathOf(request);
    const known = find(path);
    const methods = known?.methods ?? (others.has(path) ? ['GET'] : []);
    const trimmed = withoutSlash(path);
    request.routeOfPath = (known ?? find(trimmed))?.route ?? null;
    if (known === undefined ? methods.length === 0 : known.route.access !== 'public') await admitUnrouted(request, reply);
    if (methods.length === 0 && trimmed !== path && isKnown(trimmed)) throw trailingSlash(trimmed);
    // With the method of a route, a parameter has a character that the path gives another meaning: no such thing.
    if (methods.length === 0 || methods.includes(request.method)) throw new ServiceError('NOT_FOUND', 'There is nothing at this path.');
    throw wrongMethod(methods);
  });

  return {
    /** Adds the method of a route to a path. Parameters in the path are written as `{id}`. */
    add(path: string, route: Route): void {
      const pattern = new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`);
      const known = paths.get(path) ?? { pattern, route, methods: [] };
      known.methods.push(route.method);
      paths.set(path, known);
      if (!path.includes('{')) longestFixedPath = Math.max(longestFixedPath, path.length);
    },
    /**
     * The error of a request that the router matched to a path with parameters although it means another path: 405 if
     * its path is mounted itself (`/items/batch` is not an item's id), 404 if it ends in a slash (`/items/` is not an empty id).
     */
    misroutedTo(path: string, request: FastifyRequest): ServiceError | undefined {
      if (!path.includes('{')) return undefined;
      const asked = pathOf(request);
      // The length spares most ids a look-up.
      const meant = asked.length <= longestFixedPath ? paths.get(asked) : undefined;
      if (meant !== undefined && meant !== paths.get(path)) return wrongMethod(meant.methods);
      return asked.endsWith('/') && !path.endsWith('/') ? trailingSlash(withoutSlash(asked)) : undefined;
    },
  };
}

function pathOf({ url }: FastifyRequest): string {
  const end = url.indexOf('?');
  return end === -1 ? url : url.slice(0, end);
}

const withoutSlash = (path: string): string => path.replace(/\/+$/, '');

/** 404 for a path that is only known without its trailing slash. */
function trailingSlash(trimmed: string): ServiceError {
  return new ServiceError('NOT_FOUND', `There is nothing at this path: it ends in a slash. Request ${trimmed} instead.`);
}

function wrongMethod(methods: readonly string[]): ServiceError {
  // Every GET route also answers HEAD.
  const allow = methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ');
  return new ServiceError('METHOD_NOT_ALLOWED', `This path takes ${allow}.`, { headers: { Allow: allow } });
}
