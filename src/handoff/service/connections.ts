import type { Awaitable } from '../../kit/awaitable.ts';
import { LimitReached } from '../../kit/errors.ts';
import { OwnerQuota } from '../../kit/owner-quota.ts';
import type { Tier } from '../model/common.ts';
import type { TierLimits } from '../rules/tiers.ts';
import type { Caller } from './authentication.ts';

/** Something that must end when the key, session or token of its caller becomes invalid: a stream or a waiting request. */
interface Watched {
  end(why: 'revoked'): void;
}

/** The `Retry-After` of a tenant at its quota, in seconds: an estimate, since nothing tells when a connection will close. */
const retryAfterSeconds = 5;

/** The streams and waiting requests that are open: their number by tenant, and their callers. */
export class OpenConnections {
  readonly #isValid: (caller: Caller) => Awaitable<boolean>;
  readonly #limits: Readonly<Record<Tier, TierLimits>>;
  readonly #quota = new OwnerQuota();
  readonly #byCredential = new Map<string, { readonly caller: Caller; readonly open: Set<Watched> }>();

  /**
   * @param isValid whether the credential of a caller is still valid
   * @param limits by tier: how many connections a tenant may have open
   */
  constructor(isValid: (caller: Caller) => Awaitable<boolean>, limits: Readonly<Record<Tier, TierLimits>>) {
    this.#isValid = isValid;
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
  watch(caller: Caller, watched: Watched): () => void {
    const { credential } = caller;
    if (credential === undefined) return () => undefined;
    const entry = this.#byCredential.get(credential) ?? { caller, open: new Set() };
    this.#byCredential.set(credential, entry);
    entry.open.add(watched);
    return () => {
      entry.open.delete(watched);
      if (entry.open.size === 0 && this.#byCredential.get(credential) === entry) this.#byCredential.delete(credential);
    };
  }

  /** Ends the streams and waiting requests whose callers are no longer valid: revoked, expired, or of a deleted tenant. */
  async recheck(): Promise<void> {
    // biome-ignore lint/plugin: a pass reads a key and no packet.
    for (const { caller, open } of [...this.#byCredential.values()]) {
      if (await this.#isValid(caller)) continue;
      for (const watched of [...open]) watched.end('revoked');
    }
  }
}
