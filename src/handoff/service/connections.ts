import { LimitReached } from '../../kit/errors.ts';
import { OwnerQuota } from '../../kit/owner-quota.ts';
import type { Tier } from '../model/common.ts';
import type { TierLimits } from '../rules/tiers.ts';
import type { Caller } from './authentication.ts';
import type { KeyService } from './keys.ts';

/** Something that must end when its key becomes invalid: a stream or a waiting request. */
interface Watched {
  end(why: 'revoked'): void;
}

/** The `Retry-After` of a tenant at its quota, in seconds: an estimate, since nothing tells when a connection will close. */
const retryAfterSeconds = 5;

/** The streams and waiting requests that are open: their number by tenant, and their keys. */
export class Connections {
  readonly #keys: Pick<KeyService, 'authenticate'>;
  readonly #limits: Readonly<Record<Tier, TierLimits>>;
  readonly #quota = new OwnerQuota();
  readonly #byKey = new Map<string, Set<Watched>>();

  /** @param limits by tier: how many connections a tenant may have open */
  constructor(keys: Pick<KeyService, 'authenticate'>, limits: Readonly<Record<Tier, TierLimits>>) {
    this.#keys = keys;
    this.#limits = limits;
  }

  /** Counts a connection of the caller's tenant; returns the function that releases it. @throws LimitReached */
  connect({ tenant_id, tenant_tier }: Caller): () => void {
    const max = this.#limits[tenant_tier].connections;
    const release = this.#quota.acquire(tenant_id, max);
    if (release !== undefined) return release;
    const detail = `The tenant has all of its ${max} connections open. Close one, or try again in ${retryAfterSeconds} seconds.`;
    throw new LimitReached(detail, { name: 'connections', max }, retryAfterSeconds);
  }

  /** Includes an open stream or waiting request in `recheck`; returns the function that removes it. */
  watch(key: string | undefined, open: Watched): () => void {
    if (key === undefined) return () => undefined;
    const watched = this.#byKey.get(key) ?? new Set();
    this.#byKey.set(key, watched.add(open));
    return () => {
      watched.delete(open);
      if (watched.size === 0 && this.#byKey.get(key) === watched) this.#byKey.delete(key);
    };
  }

  /** Ends the streams and waiting requests whose keys are no longer valid: revoked, expired, or of a deleted tenant. */
  async recheck(): Promise<void> {
    // biome-ignore lint/plugin: a pass reads a key and no packet.
    for (const [key, watched] of [...this.#byKey]) {
      if ((await this.#keys.authenticate(key)) !== undefined) continue;
      for (const open of [...watched]) open.end('revoked');
    }
  }
}
