import { readCursor, writeCursor } from '../../kit/cursor.ts';
import { defined } from '../../kit/defined.ts';
import { conflict, type Fault, invalid, invalidRequest, ServiceError, short } from '../../kit/errors.ts';
import { entityTagOf, isKnown, requireMatch } from '../../kit/etag.ts';
import type { SchemaChecks } from '../../kit/json-schema/checks.ts';
import type { Checked } from '../../kit/json-schema/compile.ts';
import type { Turns } from '../../kit/turns.ts';
import type { Contract, ContractRequest } from '../model/contract.ts';
import type { ChainRequest } from '../model/packet.ts';
import { requireContractOf } from '../rules/rights.ts';
import { type StoredContract, shownContract } from '../store/contracts.ts';
import { type Caller, circumstancesOf } from './authentication.ts';
import { ContractCache, type Enforced } from './contract-cache.ts';
import type { ServiceParts } from './parts.ts';
import { auditRecord } from './trail.ts';

interface ContractServiceParts extends Omit<ServiceParts, 'newId'> {
  turns: Turns;
  checks: SchemaChecks;
  /** Called with each agent for which a contract is published. */
  onSeen: (tenant: number, agentId: string) => void;
}

/** What a request expects of the contract that it changes. */
export interface Preconditions {
  readonly ifMatch?: string | undefined;
  readonly ifNoneMatch?: string | undefined;
}

/** What the contract of the target agent says to a new packet; its refusal, unless the packet satisfies it. */
export interface Verdict {
  readonly version: number;
  readonly refusal?: ServiceError;
}

/** The most contracts of a tenant: which agents have one is kept in memory. */
const maxContracts = 1000;

/** The largest schema of a contract, and the largest examples, as bytes of their JSON. */
const maxBytes = 32 * 1024;

/** The most faults of a schema in one answer. */
const maxSchemaFaults = 50;

/** The items of a page, if a request does not say. */
const defaultLimit = 50;

/** The operations on contracts, and the check of new packets. */
export function createContractService({ store, clock, turns, checks, onSeen }: ContractServiceParts) {
  const cache = new ContractCache(store);

  /** Changes an agent's contract in one unit of work. `change` returns what to store; undefined: nothing. */
  async function change<T>(
    caller: Caller,
    agentId: string,
    { ifMatch, ifNoneMatch, isRequired = false }: Preconditions & { readonly isRequired?: boolean },
    change: (before: StoredContract | undefined, now: string) => { result: T; stored?: StoredContract; action?: string },
  ): Promise<T> {
    requireContractOf(caller, agentId);
    const at = circumstancesOf(caller, clock());
    return store.of(caller.tenant_number).commit({
      contractsOf: [agentId],
      work({ contracts, trail }) {
        const before = contracts.get(agentId);
        const published = before?.removed_at === null ? before : undefined;
        if (published === undefined && isRequired) throw noContract();
        if (published === undefined && ifMatch !== undefined)
          throw new ServiceError('PRECONDITION_FAILED', 'If-Match names a contract; the agent has none.');
        if (published !== undefined) {
          const etag = entityTagOf(published.version);
          requireMatch(ifMatch, etag, 'contract');
          if (ifNoneMatch !== undefined && isKnown(ifNoneMatch, etag))
            throw new ServiceError('PRECONDITION_FAILED', `The agent has a contract; its ETag is ${etag} now.`);
        }
        const { result, stored, action } = change(before, at.now.toISOString());
        if (stored === undefined) return result;
        if (published === undefined && contracts.published + contracts.inserted.length >= maxContracts)
          throw conflict(`The tenant has ${maxContracts} contracts, the maximum; remove one first.`);
        contracts.publish(stored);
        trail.audit(auditRecord(caller, 'contract', action!, { agent_id: agentId, version: stored.version }), at);
        return result;
      },
    });
  }

  return {
    /** Called when contracts may have changed since they were read. */
    changed: () => cache.clear(),

    /** Publishes an agent's contract. `isNew`: it had none. */
    async publish(caller: Caller, agentId: string, request: ContractRequest, preconditions: Preconditions = {}) {
      requireContractOf(caller, agentId);
      if (!isName(agentId)) throw invalid('agent_id', `agent_id must have 1 to ${maxName} characters, and no NUL.`);
      const owner = caller.tenant_number;
      requireSmall('schema', request.schema);
      const faults = await checks.faultsOf(owner, request.schema);
      if (faults.length > 0) throw invalidRequest(faults.slice(0, maxSchemaFaults));
      requireSmall('examples', request.examples ?? []);
      const text = JSON.stringify(request.schema);
      for (const [index, example] of (request.examples ?? []).entries()) {
        await turns.take(owner);
        const checked = await checks.check({ owner, schema: text, value: JSON.stringify(example), whole: 'The packet' });
        requireSatisfied(`examples.${index}`, checked);
      }
      const { schema, description = null, examples = [] } = request;
      const document = JSON.stringify({ schema, description, examples });
      onSeen(caller.tenant_number, agentId);
      return change(caller, agentId, preconditions, (before, now): { result: Published; stored?: StoredContract; action?: string } => {
        const isNew = before === undefined || before.removed_at !== null;
        if (!isNew && before.document === document) return { result: { contract: shownContract(before), isNew } };
        const stored: StoredContract = {
          agent_id: agentId,
          version: (before?.version ?? 0) + 1,
          document,
          created_at: isNew ? now : before.created_at,
          updated_at: now,
          removed_at: null,
        };
        return { result: { contract: shownContract(stored), isNew }, stored, action: isNew ? 'created' : 'updated' };
      });
    },

    /** An agent's contract. @throws ServiceError 404 */
    async get(caller: Caller, agentId: string): Promise<Contract> {
      const found = isName(agentId) ? await store.of(caller.tenant_number).contracts.find(agentId) : undefined;
      if (found === undefined) throw noContract();
      return shownContract(found);
    },

    /** A page of the tenant's contracts, by the ids of the agents. The read is cancelled by `signal`. */
    async list(caller: Caller, { limit = defaultLimit, cursor }: { limit?: number; cursor?: string }, signal: AbortSignal) {
      const scope = `${caller.tenant_id} contracts`;
      const after = cursor === undefined ? '' : readCursor(scope, cursor);
      const rows = await store.of(caller.tenant_number, signal).contracts.page(after, limit + 1);
      const page = rows.slice(0, limit);
      const last = page.at(-1)?.agent_id;
      return {
        contracts: page.map(shownContract),
        next_cursor: rows.length > limit && last !== undefined ? writeCursor(scope, last) : null,
      };
    },

    /** Removes an agent's contract. @throws ServiceError 404 */
    async remove(caller: Caller, agentId: string, preconditions: Preconditions = {}): Promise<void> {
      if (!isName(agentId)) throw noContract();
      await change(caller, agentId, { ...preconditions, isRequired: true }, (before, now) => {
        const stored = { ...before!, document: '', updated_at: now, removed_at: now };
        return { result: undefined, stored, action: 'deleted' };
      });
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
        await turns.take(tenant);
        const contract = await cache.enforced(tenant, agentId, version);
        if (contract === undefined) continue;
        const checked = await checks.check({ owner: tenant, schema: contract.schema, value: checkedPart(request), whole: 'The packet' });
        verdicts.set(request, verdictOf(agentId, contract, checked));
      }
      return verdicts;
    },
  };
}

/** The longest id of an agent. */
const maxName = 512;

/** Whether a text can be the id of a packet's target agent. */
const isName = (text: string): boolean => text.length > 0 && text.length <= maxName && !text.includes('\0');

/** What contracts say to new packets. */
export type Verdicts = ReadonlyMap<ChainRequest, Verdict>;

export type ContractService = ReturnType<typeof createContractService>;

/** A contract as published, and whether its agent had none before. */
export interface Published {
  readonly contract: Contract;
  readonly isNew: boolean;
}

const noContract = () => new ServiceError('NOT_FOUND', 'The agent has no contract.');

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
  const more = faults.length === 1 ? '' : ` There are ${faults.length - 1} more faults.`;
  return new ServiceError('CONTRACT_VIOLATION', `The contract of ${agent_id} (version ${version}) refuses the packet: ${detail}${more}`, {
    field: field === '' ? null : field,
    faults,
    extra: {
      errors: faults.map((fault) => ({ field: short(fault.field), message: short(fault.detail), detail: short(fault.detail) })),
      contract: { agent_id, version, description },
    },
  });
}
