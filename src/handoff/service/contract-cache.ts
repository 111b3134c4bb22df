import { LRUCache } from 'lru-cache';

import type { Awaitable } from '../../kit/awaitable.ts';
import { readJson } from '../../kit/json.ts';
import type { Contract, ContractRequest } from '../model/contract.ts';
import type { StoredDocument } from '../store/documents.ts';
import type { Store } from '../store/store.ts';

/** A contract that new packets are checked against. */
export interface Enforced {
  readonly version: number;
  readonly description: string | null;
  /** Its schema as JSON. */
  readonly schema: string;
}

/** The most tenants whose contracts are known. */
const maxTenants = 1000;

/** The most contracts that are kept. The schema of one has up to 32 KiB. */
const maxContracts = 200;

/** The agents that have a contract, until any contract changes, and the most recently used contracts. */
export class ContractCache {
  readonly #store: Store;
  /** The versions of the contracts of tenants, by the id of the agent. */
  readonly #versions = new LRUCache<number, Awaitable<ReadonlyMap<string, number>>>({ max: maxTenants });
  /** By tenant, version and agent. A version never changes, so entries stay valid. */
  readonly #contracts = new LRUCache<string, Promise<Enforced | undefined>>({ max: maxContracts });

  constructor(store: Store) {
    this.#store = store;
  }

  /** Forgets which agents have a contract: some may have changed. */
  clear(): void {
    this.#versions.clear();
  }

  versionsOf(tenant: number): Awaitable<ReadonlyMap<string, number>> {
    const versions = this.#versions;
    const known = versions.get(tenant);
    if (known !== undefined) return known;
    const reading: Promise<ReadonlyMap<string, number>> = this.#store.whole(tenant).documents.contractVersions();
    versions.set(tenant, reading);
    reading.then(
      // Not after a change since then.
      (found) => versions.get(tenant) === reading && versions.set(tenant, found),
      () => versions.get(tenant) === reading && versions.delete(tenant),
    );
    return reading;
  }

  /** An agent's contract; undefined if it was removed since its version was read. */
  enforced(tenant: number, agentId: string, version: number): Promise<Enforced | undefined> {
    const key = `${tenant} ${version} ${agentId}`;
    const known = this.#contracts.get(key);
    if (known !== undefined) return known;
    const reading = this.#read(tenant, agentId);
    this.#contracts.set(key, reading);
    reading.then(
      // The contract was replaced or removed after its version was read.
      (read) => read?.version !== version && this.#contracts.delete(key),
      () => this.#contracts.delete(key),
    );
    return reading;
  }

  async #read(tenant: number, agentId: string): Promise<Enforced | undefined> {
    const stored = await this.#store.whole(tenant).documents.find('contract', agentId);
    if (stored === undefined) return undefined;
    const { schema, description, version } = shownContract(stored);
    return { version, description, schema: JSON.stringify(schema) };
  }
}

/** A contract as callers see it. */
export function shownContract({ name: agent_id, version, document, created_at, updated_at }: StoredDocument): Contract {
  const { schema, description, examples } = readJson(document) as Omit<ContractRequest, 'description'> & Pick<Contract, 'description'>;
  return { agent_id, version, schema, description, examples: examples ?? [], created_at, updated_at };
}
