import { unavailable } from '../errors.ts';
import { health, metrics, ready } from '../system.ts';
import type { Metrics } from './metrics.ts';
import type { Mount } from './mount.ts';

interface SystemParts {
  /** Resolves when the database answers. */
  ping(): Promise<void>;
  metrics: Metrics;
}

/** Mounts `/health`, `/ready` and `/metrics`. */
export function mountSystem<Context>(mount: Mount<Context>, parts: SystemParts): void {
  mount(health, () => ({ status: 'ok' }));
  mount(ready, async () => {
    await parts.ping().catch((error: unknown) => {
      throw unavailable(error);
    });
    return { status: 'ok' };
  });
  mount(metrics, () => parts.metrics.registry.metrics());
}
