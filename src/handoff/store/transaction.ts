import { type Group, noTenant } from './engine/group.ts';
import { nouns } from './nouns.ts';
import type { TrailBuffer } from './trail.ts';

/**
 * What a unit of work reads and changes: a member for each noun of `nouns` that has writes. Most are those of the unit's tenant.
 * A group makes a buffer only for what its units use.
 */
export class Transaction {
  readonly #tenant: number;
  readonly #group: Group<unknown>;

  constructor(tenant: number, group: Group<unknown>) {
    this.#tenant = tenant;
    this.#group = group;
  }

  get tenants() {
    return this.#group.of(nouns.tenants.writes, noTenant);
  }

  get keys() {
    return this.#group.of(nouns.keys.writes, noTenant);
  }

  get people() {
    return this.#group.of(nouns.people.writes, this.#tenant);
  }

  get sessions() {
    return this.#group.of(nouns.sessions.writes, this.#tenant);
  }

  get executions() {
    return this.#group.of(nouns.executions.writes, this.#tenant);
  }

  get documents() {
    return this.#group.of(nouns.documents.writes, this.#tenant);
  }

  get schedules() {
    return this.#group.of(nouns.schedules.writes, this.#tenant);
  }

  get webhooks() {
    return this.#group.of(nouns.webhooks.writes, this.#tenant);
  }

  get erasures() {
    return this.#group.of(nouns.erasures.writes, this.#tenant);
  }

  get packets() {
    return this.#group.of(nouns.packets.writes, this.#tenant);
  }

  get questions() {
    return this.#group.of(nouns.questions.writes, this.#tenant);
  }

  get claimQueue() {
    return this.#group.of(nouns.claimQueue.writes, this.#tenant);
  }

  get answerLinks() {
    return this.#group.of(nouns.answerLinks.writes, this.#tenant);
  }

  get deliveries() {
    return this.#group.of(nouns.deliveries.writes, this.#tenant);
  }

  get idempotency() {
    return this.#group.of(nouns.idempotency.writes, this.#tenant);
  }

  get counters() {
    return this.#group.of(nouns.counters.writes, this.#tenant);
  }

  get openPacketCounts() {
    return this.#group.of(nouns.openPacketCounts.writes, this.#tenant);
  }

  get trail() {
    return this.#group.of(nouns.trail.writes, this.#tenant);
  }

  /** The trail of another tenant: what an admin does to a tenant is recorded in that tenant's trail. */
  trailOf(tenant: number): TrailBuffer {
    return this.#group.of(nouns.trail.writes, tenant);
  }
}
