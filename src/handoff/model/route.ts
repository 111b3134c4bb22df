import { routeDefiner } from '../../kit/route.ts';

/** What a handoff route says besides its form. */
export interface HandoffRoute {
  /** Who may call it: anyone, any valid key, or an admin key. */
  readonly access: 'public' | 'key' | 'admin';
  /** Whether the key may come as the query parameter `api_key`, for clients that can't send headers. */
  readonly keyInQuery?: boolean;
  /** How large a body is let in: an item's limit of the tier (default), or a batch of such items. */
  readonly bodySize?: 'item' | 'batch';
  /** Whether the daily cap applies, so that a refusal by another limit looks at it too. */
  readonly capped?: boolean;
}

/** Declares a route of the handoff service. */
export const defineRoute = routeDefiner<HandoffRoute>();
