import type { HandlersOf } from '../../kit/http/handlers.ts';
import type { routes } from '../model/api.ts';
import type { Caller } from '../service/access.ts';

type Handlers = HandlersOf<typeof routes, Caller>;

/** Returns handlers, with the types of their routes. */
export const handlersOf = <Id extends keyof Handlers>(handlers: Pick<Handlers, Id>): Pick<Handlers, Id> => handlers;
