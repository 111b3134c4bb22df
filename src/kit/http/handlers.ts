import type { Route } from '../route.ts';
import type { Handler, MountOptions } from './endpoint.ts';
import type { Mount } from './mount.ts';

/** A handler with the options of its route. */
interface HandlerWithOptions<R extends Route, Context> extends MountOptions {
  readonly handle: Handler<R, Context>;
}

/** A handler of every route of a table, by operation name. */
export type HandlersOf<Routes, Context> = {
  readonly [Id in keyof Routes]: Routes[Id] extends Route ? Handler<Routes[Id], Context> | HandlerWithOptions<Routes[Id], Context> : never;
};

/** Mounts every route of a table with its handler. */
export function mountAll<const Routes extends Readonly<Record<string, Route>>, Context, Traits extends object>(
  mount: Mount<Context, Traits>,
  routes: Routes & Readonly<Record<string, Traits>>,
  handlers: HandlersOf<Routes, Context>,
): void {
  type One = Route & Traits;
  for (const [id, route] of Object.entries<One>(routes)) {
    const given = handlers[id] as Handler<One, Context> | HandlerWithOptions<One, Context>;
    if (typeof given === 'function') mount(route, given);
    else mount(route, given.handle, given);
  }
}
