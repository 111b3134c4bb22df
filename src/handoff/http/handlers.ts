import type { HandlersOf } from '../../kit/http/handlers.ts';
import { lowerCaseIds, type Mount } from '../../kit/http/mount.ts';
import type { SystemRoutes } from '../../kit/system.ts';
import { answerPageRoutes } from '../model/answer-link.ts';
import { routes } from '../model/api.ts';
import { respondInConsole } from '../model/console.ts';
import type { HandoffRoute } from '../model/route.ts';
import { streamRoutes } from '../model/stream.ts';
import type { Caller } from '../service/authentication.ts';

/** Mounts a route of the service. Its handler gets the caller. */
export type HandoffMount = Mount<Caller, HandoffRoute>;

/** Reads path parameters: all are ids but these, which are names. */
export const readParams = lowerCaseIds(['agent_id', 'name']);

/** The routes that are mounted: all but those of MCP and A2A, whose endpoints mount them. */
export const mounted = { ...routes, ...streamRoutes, ...answerPageRoutes, respondInConsole };

/** The handlers of all routes that are mounted. */
export type Handlers = HandlersOf<typeof mounted, Caller>;

/** The handlers of all nouns. A route without one does not compile. */
export type NounHandlers = Omit<Handlers, keyof SystemRoutes | keyof typeof streamRoutes>;

/** Returns handlers, with the types of their routes. */
export const handlersOf = <Id extends keyof Handlers>(handlers: Pick<Handlers, Id>): Pick<Handlers, Id> => handlers;
