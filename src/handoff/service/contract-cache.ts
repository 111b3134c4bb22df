import type { Awaitable } from '../../kit/awaitable.ts';
import type { Checker } from '../../kit/json-schema/compile.ts';
import { shownContract } from '../store/contracts.ts';
import type { Store } from '../store/store.ts';

/** A contract that new packets are checked against. */
export interface Enforced {
  readonly version: number;
  readonly description: string | null;
  readonly checker: Checker;
}

/** The compiler of schemas. It is loaded with the first contract, since most services never get one. */
export const load = () => import('../../kit/json-schema/compile.ts');

/** The most tenants whose contracts are known. */
const maxTenants = 1000;

/** The most contracts that are compiled. One takes up to a megabyte. */
const maxCompiled = 100;

/** The agents that have a contract, until any contract changes, and the most recently used contracts, compiled. */
export class ContractCache {
  readonly #store: Store;
  /** The versions of the contracts of tenants, by the id of the agent. */
  #versions = new Map<number, Awaitable<ReadonlyMap<string, number>>>();
  /** By tenant, version and agent. A version never changes, so entries stay valid. The most recently used is last. */
  readonly #compiled = new Map<string, Promise<Enforced | undefined>>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Forgets which agents have a contract: some may have changed. */
  clear(): void {
    this.#versions = new Map();
  }

  versionsOf(tenant: number): Awaitable<ReadonlyMap<string, number>> {
    const known = this.#versions.get(tenant);
    if (known !== undefined) return known;
    const versions = this.#versions;
    const reading: Promise<ReadonlyMap<string, number>> = this.#store.of(tenant).contracts.versions();
    keep(versions, tenant, reading, maxTenants);
    reading.then(
      // A change since then has made a new map.
      (found) => versions.get(tenant) === reading && versions.set(tenant, found),
      () => versions.delete(tenant),
    );
    return reading;
  }

  /** An agent's contract, compiled in a turn; undefined if it was removed since its version was read. */
  enforced(tenant: number, agentId: string, version: number, turn: () => Promise<void>): Promise<Enforced | undefined> {
    const key = `${tenant} ${version} ${agentId}`;
    const known = this.#compiled.get(key);
    this.#compiled.delete(key);
    const making = known ?? this.#make(tenant, agentId, turn);
    keep(this.#compiled, key, making, maxCompiled);
    if (known === undefined)
      making.then(
        // The contract was replaced or removed after its version was read.
        (made) => made?.version !== version && this.#compiled.delete(key),
        () => this.#compiled.delete(key),
      );
    return making;
  }

  async #make(tenant: number, agentId: string, turn: () => Promise<void>): Promise<Enforced | undefined> {
    const stored = await this.#store.of(tenant).contracts.find(agentId);
    if (stored === undefined) return undefined;
    const { schema, description, version } = shownContract(stored);
    const { compileSchema } = await load();
    await turn();
    const compiled = compileSchema(schema);
    // Its bounds were checked when it was published.
    if ('faults' in compiled) throw new Error(`The contract of an agent can't be compiled: ${compiled.faults[0]?.detail}`);
    return { version, description, checker: compiled.checker };
  }
}

/** Adds an entry to a cache, which drops its oldest one when it is full. */
function keep<Key, Value>(cache: Map<Key, Value>, key: Key, value: Value, most: number): void {
  if (cache.size >= most) cache.delete(cache.keys().next().value!);
  cache.set(key, value);
}
