/** The most deliveries that one tenant has leased at once, waiting or running: a quarter of the attempts of all tenants. */
const maxOfTenant = 256;

/** The most concurrent attempts over all receivers. */
const maxRunning = 4 * maxOfTenant;

/** The limit on the total size of the bodies in memory, in bytes, and of one tenant's. Each may be exceeded by about one body. */
const maxBodies = 64 * 1024 * 1024;
const maxBodiesOfTenant = maxBodies / 4;

/** The size counted for a body before it is read, in bytes. */
const unreadBody = 1024 * 1024;

interface Use {
  /** Leased deliveries, waiting or running. */
  leased: number;
  /** The bytes of the bodies of running attempts. */
  bytes: number;
}

/** The reservation of room for a running attempt. */
export interface Reservation {
  /** Corrects the size that is counted for its body. */
  resize(bytes: number): void;
  release(): void;
}

/** The room for attempts, which no tenant can use up: a tenant's slow receivers delay no deliveries of others. */
export class AttemptRoom {
  readonly #tenants = new Map<number, Use>();
  readonly #onRoom: () => void;
  #running = 0;
  #bytes = 0;

  /** @param onRoom called when there is more room than before */
  constructor(onRoom: () => void) {
    this.#onRoom = onRoom;
  }

  /** How many more attempts could run. */
  get left(): number {
    return maxRunning - this.#running;
  }

  /** How many more deliveries of the tenant may be leased. */
  leftOf(tenant: number): number {
    return Math.max(0, maxOfTenant - (this.#tenants.get(tenant)?.leased ?? 0));
  }

  /** Counts leased deliveries of a tenant. */
  lease(tenant: number, count: number): void {
    const use = this.#tenants.get(tenant);
    if (use === undefined) this.#tenants.set(tenant, { leased: count, bytes: 0 });
    else use.leased += count;
  }

  /** Gives up a leased delivery that has ended or is not attempted. */
  giveUp(tenant: number): void {
    const use = this.#tenants.get(tenant)!;
    use.leased -= 1;
    if (use.leased === 0) this.#tenants.delete(tenant);
  }

  /** Whether a leased delivery of the tenant may be attempted now. */
  has(tenant: number): boolean {
    if (this.left <= 0 || this.#bytes + unreadBody > maxBodies) return false;
    return (this.#tenants.get(tenant)?.bytes ?? 0) + unreadBody <= maxBodiesOfTenant;
  }

  /** Reserves room for an attempt at a leased delivery. */
  reserve(tenant: number): Reservation {
    const use = this.#tenants.get(tenant)!;
    let reserved = 0;
    const count = (bytes: number) => {
      use.bytes += bytes - reserved;
      this.#bytes += bytes - reserved;
      reserved = bytes;
    };
    this.#running += 1;
    count(unreadBody);
    return {
      resize: (bytes) => {
        count(bytes);
        this.#onRoom();
      },
      release: () => {
        this.#running -= 1;
        count(0);
        this.giveUp(tenant);
        this.#onRoom();
      },
    };
  }
}
