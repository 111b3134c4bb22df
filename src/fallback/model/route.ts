import { routeDefiner } from '../../kit/route.ts';

/** What a fallback route says besides its form. */
export interface FallbackRoute {
  /** Who may call it: anyone; any key, one that may only read included; or a key that may change things. */
  readonly access: 'public' | 'read' | 'write';
}

/** Declares a route of the fallback service. */
export const defineRoute = routeDefiner<FallbackRoute>();
