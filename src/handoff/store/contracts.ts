import { type Kysely, sql } from 'kysely';
import { readJson } from '../../kit/json.ts';
import type { Contract, ContractRequest } from '../model/contract.ts';
import type { Writes } from './engine/group.ts';
import { TableBuffer } from './engine/table-buffer.ts';
import type { ReadParts, Scope } from './noun.ts';
import type { RowOf, Tables } from './tables.ts';

declare module './tables.ts' {
  interface Tables {
    /** What packets for an agent must contain. */
    contracts: {
      tenant: number;
      agent_id: string;
      version: number;
      /** The schema, the description and the examples as JSON; empty once it is removed. */
      document: string;
      created_at: string;
      updated_at: string;
      removed_at: string | null;
    };
  }
}

/** The contracts that a unit needs. */
export interface ContractNeeds {
  /** The ids of agents whose contracts to lock; the tenant's contracts are counted. */
  readonly contractsOf?: readonly string[];
}

/** A stored contract. A removed one has no document. */
export type StoredContract = Omit<RowOf<'contracts'>, 'tenant'>;

const columns = ['agent_id', 'version', 'document', 'created_at', 'updated_at', 'removed_at'] as const;

/** A tenant's contracts by the id of the agent, removed ones included. */
export class ContractBuffer extends TableBuffer<string, StoredContract> {
  /** How many contracts of the tenant were published when the group began. */
  published = 0;

  /** Stores the next version of a contract. */
  publish(stored: StoredContract): void {
    if (this.found.has(stored.agent_id)) this.save(stored.agent_id, stored);
    else {
      this.insert(stored);
      this.journal.set(this.found, stored.agent_id, stored);
    }
  }
}

/** A contract as callers see it. */
export function shownContract({ agent_id, version, document, created_at, updated_at }: StoredContract): Contract {
  const { schema, description, examples } = readJson(document) as Omit<ContractRequest, 'description'> & Pick<Contract, 'description'>;
  return { agent_id, version, schema, description, examples: examples ?? [], created_at, updated_at };
}

/** Contracts. A change makes every instance drop its cached keys and contracts. */
const writes: Writes<ContractNeeds, ContractBuffer> = {
  needs: { contractsOf: true },
  stage: (_tenant, { journal }) => new ContractBuffer(journal),

  async find(session, group) {
    const wanted = group.wanted('agent_id', (unit) => unit.contractsOf);
    const tenants = [...new Set(wanted.map(({ tenant }) => tenant))].map((tenant) => ({ tenant, removed_at: null }));
    const [rows, published] = await Promise.all([
      session.find('contracts', ['tenant', ...columns], wanted),
      session.read('contracts', ['tenant'], tenants),
    ]);
    for (const [tenant, ...values] of rows) {
      const stored = Object.fromEntries(columns.map((column, index) => [column, values[index]])) as unknown as StoredContract;
      group.of(writes, tenant as number).found.set(stored.agent_id, stored);
    }
    for (const [tenant] of published) group.of(writes, tenant as number).published += 1;
  },

  flush(session, group) {
    const rowsOf = (stored: readonly StoredContract[], tenant: number) => stored.map((row) => ({ tenant, ...row }));
    session.insert(
      'contracts',
      group.each(writes, ({ inserted }, tenant) => rowsOf(inserted, tenant)),
    );
    session.update(
      'contracts',
      ['tenant', 'agent_id'],
      group.each(writes, ({ changed }, tenant) => rowsOf([...changed.values()], tenant)),
    );
    const isChanged = group.each(writes, ({ inserted, changed }) => [inserted.length + changed.size > 0]).includes(true);
    if (isChanged) session.add('versions', ['name'], 'value', [{ name: 'access', value: 1 }]);
  },
};

/** The published contracts of a tenant. */
const publishedOf = (db: Kysely<Tables>, tenant: number) =>
  db
    .selectFrom('contracts')
    .where('tenant', '=', tenant)
    // As in the partial index.
    .where('removed_at', 'is', null);

/** The versions of the contracts of a tenant, by the id of the agent: of these agents, or of all. */
export async function versionsOf(db: Kysely<Tables>, tenant: number, agents?: readonly string[]): Promise<Map<string, number>> {
  if (agents?.length === 0) return new Map();
  const all = publishedOf(db, tenant).select(['agent_id', 'version']);
  const rows = await (agents === undefined ? all : all.where('agent_id', 'in', agents)).execute();
  return new Map(rows.map(({ agent_id, version }) => [agent_id, version]));
}

function reads({ database }: ReadParts) {
  const one = database.query<{ tenant: number; agent_id: string }, StoredContract>((db, { tenant, agent_id }) =>
    db
      .selectFrom('contracts')
      .select(columns)
      .where('tenant', '=', tenant)
      .where('agent_id', '=', agent_id)
      .where('removed_at', 'is', null),
  );
  const of = ({ tenant, inTurn }: Scope) => ({
    /** An agent's contract; undefined if it has none. */
    find: (agent_id: string) => one.first({ tenant, agent_id }),
    /** The versions of all contracts, by the id of the agent. */
    versions: () => versionsOf(database.reads, tenant),
    /** The contracts after an agent's id, by the ids of the agents. */
    page: (after: string, limit: number): Promise<StoredContract[]> =>
      inTurn((db) =>
        publishedOf(db, tenant).select(columns).where('agent_id', '>', after).orderBy('agent_id').limit(sql.lit(limit)).execute(),
      ),
  });
  return { of };
}

/** What packets for agents must contain. */
export const contracts = { writes, reads };
