import { routeDefiner } from '../../kit/route.ts';
import type { Scope } from './common.ts';

/** Properties of a handoff route beyond its method, path and schemas. */
export interface HandoffRoute {
  /**
   * Who may call it: anyone (`public`), anyone with an answer link (`link`) or on the way through a sign-in (`sign-in`), an admin key, a key with this scope, or any valid
   * key (`any`), whose rights each operation behind the route checks.
   */
  readonly access: 'public' | 'link' | 'sign-in' | 'admin' | 'any' | Scope;
  /** Another scope that is sufficient. */
  readonly alternative?: Scope;
  /** Whether the key may be sent as the query parameter `api_key`, for clients that can't set headers. */
  readonly keyInQuery?: boolean;
  /** Whether clients by other projects call it, from any machine or page, so that `Host` and `Origin` must name the service. */
  readonly forPrograms?: boolean;
  /** The protected resource that it is; left out: the API with its streams and A2A. Each takes tokens for itself alone. */
  readonly resource?: 'mcp';
  /** The limit on the body's size: the tier's limit for one item (default), or the limit for a batch of items. */
  readonly bodySize?: 'item' | 'batch';
  /** Whether a refusal by another limit reports the daily quota instead, if that lasts longer. The unit that creates packets enforces the quota. */
  readonly reportsDailyQuota?: boolean;
}

/** Declares a route of the handoff service. */
export const defineRoute = routeDefiner<HandoffRoute>();
