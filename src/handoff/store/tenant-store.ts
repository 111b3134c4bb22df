import type { ReadDependencies, ReadScope } from './noun.ts';
import { nouns } from './nouns.ts';
import type { Unit, Units } from './units.ts';

type Reads = ReturnType<typeof prepareReads>;

/** Prepares the reads of all nouns, once. */
export const prepareReads = (parts: ReadDependencies) => ({
  agents: nouns.agents.reads(parts),
  ages: nouns.ages.reads(parts),
  answerLinks: nouns.answerLinks.reads(parts),
  counters: nouns.counters.reads(parts),
  deliveries: nouns.deliveries.reads(parts),
  documents: nouns.documents.reads(parts),
  erasures: nouns.erasures.reads(parts),
  executions: nouns.executions.reads(parts),
  idempotency: nouns.idempotency.reads(parts),
  keys: nouns.keys.reads(parts),
  openPacketCounts: nouns.openPacketCounts.reads(parts),
  packets: nouns.packets.reads(parts),
  people: nouns.people.reads(parts),
  questions: nouns.questions.reads(parts),
  schedules: nouns.schedules.reads(parts),
  sessions: nouns.sessions.reads(parts),
  stats: nouns.stats.reads(parts),
  tenants: nouns.tenants.reads(parts),
  trail: nouns.trail.reads(parts),
  webhooks: nouns.webhooks.reads(parts),
});

/** What jobs and admission do for all tenants, by noun. */
export const readsOfAll = (reads: Reads) => ({
  agents: reads.agents.ofAll,
  ages: reads.ages.ofAll,
  answerLinks: reads.answerLinks.ofAll,
  counters: reads.counters.ofAll,
  deliveries: reads.deliveries.ofAll,
  erasures: reads.erasures.ofAll,
  idempotency: reads.idempotency.ofAll,
  keys: reads.keys.ofAll,
  packets: reads.packets.ofAll,
  schedules: reads.schedules.ofAll,
  sessions: reads.sessions.ofAll,
  tenants: reads.tenants.ofAll,
  trail: reads.trail.ofAll,
  webhooks: reads.webhooks.ofAll,
});

/** What a caller sees of the data of one tenant: its reads by noun, which are made when they are used, and units of work. */
export class TenantStore {
  readonly #scope: ReadScope;
  readonly #reads: Reads;
  readonly #commit: Units['commit'];

  constructor(scope: ReadScope, reads: Reads, commit: Units['commit']) {
    this.#scope = scope;
    this.#reads = reads;
    this.#commit = commit;
  }

  /** Runs a unit of work; resolves when it is committed. */
  commit<T>(unit: Unit<T>): Promise<T> {
    return this.#commit(this.#scope.viewer, unit);
  }

  get agents() {
    return this.#reads.agents.ofTenant(this.#scope);
  }

  get answerLinks() {
    return this.#reads.answerLinks.ofTenant(this.#scope);
  }

  get counters() {
    return this.#reads.counters.ofTenant(this.#scope);
  }

  get deliveries() {
    return this.#reads.deliveries.ofTenant(this.#scope);
  }

  get documents() {
    return this.#reads.documents.ofTenant(this.#scope);
  }

  get erasures() {
    return this.#reads.erasures.ofTenant(this.#scope);
  }

  get executions() {
    return this.#reads.executions.ofTenant(this.#scope);
  }

  get openPacketCounts() {
    return this.#reads.openPacketCounts.ofTenant(this.#scope);
  }

  get packets() {
    return this.#reads.packets.ofTenant(this.#scope);
  }

  get people() {
    return this.#reads.people.ofTenant(this.#scope);
  }

  get questions() {
    return this.#reads.questions.ofTenant(this.#scope);
  }

  get schedules() {
    return this.#reads.schedules.ofTenant(this.#scope);
  }

  get sessions() {
    return this.#reads.sessions.ofTenant(this.#scope);
  }

  get stats() {
    return this.#reads.stats.ofTenant(this.#scope);
  }

  get trail() {
    return this.#reads.trail.ofTenant(this.#scope);
  }

  get webhooks() {
    return this.#reads.webhooks.ofTenant(this.#scope);
  }
}
