import { hash, timingSafeEqual } from 'node:crypto';

import { ServiceError, unavailable } from '../errors.ts';
import type { SystemRoutes } from '../system.ts';
import type { HandlersOf } from './handlers.ts';
import type { Metrics } from './metrics.ts';

interface SystemDependencies {
  /** Resolves when the database answers. */
  ping(): Promise<void>;
  /** Whether the service drains or is stopping. */
  isStopping(): boolean;
  metrics: Metrics;
  /** The bearer token that `/metrics` requires; undefined if it is public. */
  metricsToken?: string | undefined;
}

/** The handlers of `/health`, `/ready` and `/metrics`. */
export const systemHandlers = (parts: SystemDependencies): HandlersOf<SystemRoutes, unknown> => ({
  health: () => ({ status: 'ok' }),
  ready: async () => {
    if (parts.isStopping()) throw new ServiceError('SERVICE_UNAVAILABLE', 'The service is stopping.');
    await parts.ping().catch((error: unknown) => {
      throw unavailable(error);
    });
    return { status: 'ok' };
  },
  metrics: (_, { headers }) => {
    if (parts.metricsToken !== undefined) requireToken(headers.authorization, parts.metricsToken);
    return parts.metrics.registry.metrics();
  },
});

/** Requires `Bearer` and the token (RFC 6750, 2.1). Compares digests in constant time, so that timing reveals nothing. */
function requireToken(given: string | undefined, token: string): void {
  const digest = (text: string) => hash('sha256', text, 'buffer');
  const [, sent = ''] = /^Bearer +(\S+)$/i.exec(given ?? '') ?? [];
  if (timingSafeEqual(digest(sent), digest(token))) return;
  throw new ServiceError('UNAUTHORIZED', 'Metrics need the header Authorization: Bearer with the metrics token.', {
    headers: { 'WWW-Authenticate': 'Bearer' },
  });
}
