import type { InputOf } from '../../kit/client.ts';
import type { ResultOf, SchemasOf } from '../../kit/route.ts';
import type { parts, routes } from '../model/api.ts';

type Routes = typeof routes;

/** The types of the fallback service by the names of its API description: `FallbackTypes['Chain']`. */
export type FallbackTypes = SchemasOf<typeof parts>;

/** The body that an operation takes: `FallbackBody<'createChain'>`. */
export type FallbackBody<Name extends keyof Routes> = InputOf<Routes[Name]> extends { readonly body?: infer Body } ? Body : never;

/** The body of an operation's answer: `FallbackAnswer<'createChain'>`. */
export type FallbackAnswer<Name extends keyof Routes> = ResultOf<Routes[Name]>;
