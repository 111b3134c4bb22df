import { defined } from '../../kit/defined.ts';
import { type Fault, invalid, invalidRequest, ServiceError, short } from '../../kit/errors.ts';
import type { Turns } from '../../kit/turns.ts';
import { plural } from '../../kit/wording.ts';
import type { SchemaChecks } from '../json-schema/checks.ts';
import type { Checked } from '../json-schema/compile.ts';
import type { Contract, ContractRequest } from '../model/contract.ts';
import { errors } from '../model/errors.ts';
import type { ChainRequest } from '../model/packet.ts';
import { requireContractOf } from '../rules/rights.ts';
import type { Caller } from './authentication.ts';
import { ContractCache, type Enforced, shownContract } from './contract-cache.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { createDocumentService, type DocumentNoun, type Preconditions } from './documents.ts';

interface ContractServiceDependencies extends Omit<ServiceDependencies, 'newId'> {
  turns: Turns;
  checks: SchemaChecks;
  /** Called with each agent for which a contract is published. */
  onSeen: (tenant: number, agentId: string) => void;
}

/** What the contract of the target agent says to a new packet; its refusal, unless the packet satisfies it. */
export interface Verdict {
  readonly version: number;
  readonly refusal?: ServiceError;
}

/** The largest schema of a contract, and the largest examples, as bytes of their JSON. */
const maxBytes = 32 * 1024;

/** The most faults of a schema in one answer. */
const maxSchemaFaults = 50;

/** The operations on contracts, and the check of new packets. */
export function createContractService({ store, clock, turns, checks, onSeen }: ContractServiceDependencies) {
  const cache = new ContractCache(store);

  const documents = createDocumentService({ store, clock });

  return {
    /** Called when contracts may have changed since they were read. */
    changed: () => cache.clear(),

    /** Publishes an agent's contract. `isNew`: it had none. */
    async publish(caller: Caller, agentId: string, request: ContractRequest, preconditions: Preconditions = {}) {
      requireContractOf(caller, agentId);
      const owner = caller.tenant_number;
      requireSmall('schema', request.schema);
      const faults = await checks.faultsOf(owner, request.schema);
      if (faults.length > 0) throw invalidRequest(faults.slice(0, maxSchemaFaults));
      requireSmall('examples', request.examples ?? []);
      const text = JSON.stringify(request.schema);
      for (const [index, example] of (request.examples ?? []).entries()) {
        await turns.next(owner);
        const checked = await checks.check({ owner, schema: text, value: JSON.stringify(example), whole: 'The packet' });
        requireSatisfied(`examples.${index}`, checked);
      }
      const { schema, description = null, examples = [] } = request;
      onSeen(caller.tenant_number, agentId);
      const { stored, isNew } = await documents.put(caller, contractNoun, agentId, { schema, description, examples }, preconditions);
      return { contract: shownContract(stored), isNew };
    },

    /** An agent's contract. @throws ServiceError 404 */
    async get(caller: Caller, agentId: string): Promise<Contract> {
      return shownContract(await documents.get(caller, contractNoun, agentId));
    },

    /** A page of the tenant's contracts, by the ids of the agents. The read is cancelled by `signal`. */
    async list(caller: Caller, query: { limit?: number; cursor?: string }, signal: AbortSignal) {
      const { items, next_cursor } = await documents.page(caller, contractNoun, query, signal);
      return { contracts: items.map(shownContract), next_cursor };
    },

    /** Removes an agent's contract. @throws ServiceError 404 */
    async remove(caller: Caller, agentId: string, preconditions: Preconditions = {}): Promise<void> {
      requireContractOf(caller, agentId);
      await documents.remove(caller, contractNoun, agentId, preconditions);
    },

    /** What the contracts of their target agents say to new packets as they were sent; without those whose agent has none. */
    async judge({ tenant_number: tenant }: Caller, requests: readonly ChainRequest[]): Promise<Verdicts> {
      const verdicts = new Map<ChainRequest, Verdict>();
      const known = cache.versionsOf(tenant);
      const versions = known instanceof Promise ? await known : known;
      for (const request of requests) {
        const agentId = request.metadata.target_agent.id.toWellFormed();
        const version = versions.get(agentId);
        if (version === undefined) continue;
        await turns.next(tenant);
        const contract = await cache.enforced(tenant, agentId, version);
        if (contract === undefined) continue;
        const checked = await checks.check({ owner: tenant, schema: contract.schema, value: checkedPart(request), whole: 'The packet' });
        verdicts.set(request, verdictOf(agentId, contract, checked));
      }
      return verdicts;
    },
  };
}

/** What contracts say to new packets. */
export type Verdicts = ReadonlyMap<ChainRequest, Verdict>;

export type ContractService = ReturnType<typeof createContractService>;

/** Contracts as documents. Which agents have one is kept in memory, so their number is limited. */
const contractNoun: DocumentNoun = {
  ...{ kind: 'contract', what: 'contract', many: 'contracts', field: 'agent_id', most: 1000 },
  missing: () => new ServiceError('NOT_FOUND', 'The agent has no contract.'),
};

/** Requires that a field's JSON is not too large to be handed to the thread of checks. @throws ServiceError 400 */
function requireSmall(field: string, value: unknown): void {
  const size = Buffer.byteLength(JSON.stringify(value));
  if (size > maxBytes) throw invalid(field, `${field} has ${size} bytes as JSON; at most ${maxBytes} are allowed.`);
}

/** Requires that an example satisfies the schema. @throws ServiceError 400 */
function requireSatisfied(name: string, { faults, field: part, ranOut: isUnknown }: Checked): void {
  if (isUnknown) throw invalid(part === '' ? name : `${name}.${part}`, `${name}${part && `.${part}`} can't be checked: ${ranOut}.`);
  if (faults.length === 0) return;
  throw invalidRequest(
    faults.map(({ field, detail }) => ({
      field: field === '' ? name : `${name}.${field}`,
      detail: `${name} does not satisfy the schema: ${detail}`,
    })),
  );
}

const ranOut = 'the check took too many steps; a simpler schema or a smaller packet takes fewer';

/** What a contract is applied to, as JSON. */
const checkedPart = ({ context, decisions, actions, dependencies, metadata }: ChainRequest): string =>
  JSON.stringify(defined({ context, decisions, actions, dependencies, metadata }));

function verdictOf(agentId: string, contract: Enforced, checked: Checked): Verdict {
  const isSatisfied = !checked.ranOut && checked.faults.length === 0;
  return { version: contract.version, ...(isSatisfied ? {} : { refusal: refusalOf(agentId, contract, checked) }) };
}

/** The refusal of a packet that does not satisfy a contract. */
function refusalOf(agent_id: string, { version, description }: Enforced, checked: Checked): ServiceError {
  const faults: readonly Fault[] = checked.ranOut
    ? [{ field: checked.field, detail: `${checked.field || 'The packet'} can't be checked: ${ranOut}.` }]
    : checked.faults;
  const [{ field, detail }] = faults as [Fault];
  const others = faults.length - 1;
  const more = others === 0 ? '' : ` There ${others === 1 ? 'is' : 'are'} ${plural(others, 'more fault')}.`;
  return new ServiceError(
    errors.CONTRACT_VIOLATION,
    `The contract of ${agent_id} (version ${version}) refuses the packet: ${detail}${more}`,
    {
      field: field === '' ? null : field,
      faults,
      extra: {
        errors: faults.map((fault) => ({ field: short(fault.field), message: short(fault.detail), detail: short(fault.detail) })),
        contract: { agent_id, version, description },
      },
    },
  );
}
