import { MemoryBudget } from '../../kit/memory-budget.ts';

/** The most deliveries that one tenant has leased at once, waiting or running: a quarter of the attempts of all tenants. */
const maxOfTenant = 256;

/** The most concurrent attempts over all receivers. */
const maxRunning = 4 * maxOfTenant;

/** The limit on the total size of the bodies in memory, in bytes; a tenant may have a quarter. Each may be exceeded by about one body. */
const maxBodies = 64 * 1024 * 1024;

/** The size counted for a body before it is read, in bytes. */
const unreadBody = 1024 * 1024;

/** The reservation of a running attempt. */
export interface Reservation {
  /** Corrects the size that is counted for its body. */
  resize(bytes: number): void;
  release(): void;
}

/** The budget of attempts, which no tenant can use up: a tenant's slow receivers delay no deliveries of others. */
export class AttemptBudget {
  /** Leased deliveries of each tenant, waiting or running. */
  readonly #leased = new Map<number, number>();
  /** The bodies of running attempts. */
  readonly #bodies = new MemoryBudget<number>(maxBodies);
  readonly #onFree: () => void;
  #running = 0;

  /** @param onFree called when a place becomes free */
  constructor(onFree: () => void) {
    this.#onFree = onFree;
  }

  /** How many more attempts could run. */
  get left(): number {
    return maxRunning - this.#running;
  }

  /** How many more deliveries of the tenant may be leased. */
  leftOf(tenant: number): number {
    return Math.max(0, maxOfTenant - (this.#leased.get(tenant) ?? 0));
  }

  /** Counts leased deliveries of a tenant. */
  lease(tenant: number, count: number): void {
    this.#leased.set(tenant, (this.#leased.get(tenant) ?? 0) + count);
  }

  /** Ends the lease of a delivery that has ended or is not attempted. */
  releaseLease(tenant: number): void {
    const left = this.#leased.get(tenant)! - 1;
    if (left === 0) this.#leased.delete(tenant);
    else this.#leased.set(tenant, left);
  }

  /** Whether a leased delivery of the tenant may be attempted now. */
  allows(tenant: number): boolean {
    return this.left > 0 && this.#bodies.fits(tenant, unreadBody);
  }

  /** Reserves an attempt at a leased delivery. */
  reserve(tenant: number): Reservation {
    let reserved = 0;
    const count = (bytes: number) => {
      this.#bodies.add(tenant, bytes - reserved);
      reserved = bytes;
    };
    this.#running += 1;
    count(unreadBody);
    return {
      resize: (bytes) => {
        count(bytes);
        this.#onFree();
      },
      release: () => {
        this.#running -= 1;
        count(0);
        this.releaseLease(tenant);
        this.#onFree();
      },
    };
  }
}
