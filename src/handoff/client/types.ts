import type { InputOf } from '../../kit/client.ts';
import type { ResultOf, SchemasOf } from '../../kit/route.ts';
import type { parts, routes } from '../model/api.ts';

type Routes = typeof routes;

/** The types of the handoff service by the names of its API description: `HandoffTypes['Packet']`. */
export type HandoffTypes = SchemasOf<typeof parts>;

/** The body that an operation takes: `HandoffBody<'createPacket'>`. */
export type HandoffBody<Name extends keyof Routes> = InputOf<Routes[Name]> extends { readonly body?: infer Body } ? Body : never;

/** The body of an operation's answer: `HandoffAnswer<'createPacket'>`. */
export type HandoffAnswer<Name extends keyof Routes> = ResultOf<Routes[Name]>;
