import { invalid } from '../../kit/errors.ts';
import { readJson } from '../../kit/json.ts';
import type { Delegation, DelegationRequest } from '../model/delegation.ts';
import { groupPrefix, isSamePerson, nameKey } from '../model/people.ts';
import { requireDelegationOf } from '../rules/rights.ts';
import type { StoredDocument } from '../store/documents.ts';
import type { Caller } from './authentication.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { createDocumentService, type DocumentNoun, type Preconditions } from './documents.ts';

/** Delegations as documents, by the name of the person in the form in which names are compared. */
export const delegationNoun: DocumentNoun = { kind: 'delegation', what: 'delegation', many: 'delegations', field: 'person', most: 1000 };

const shownDelegation = ({ version, document, created_at, updated_at }: StoredDocument): Delegation => {
  const { person, to, from, until, reason } = readJson(document) as Delegation;
  return { person, version, to, from, until, reason, created_at, updated_at };
};

/** A delegation as a caller sees it: one that sees its own reads the reason only if its person gave it. */
function seenBy({ sight, responder }: Caller, stored: StoredDocument): Delegation {
  const shown = shownDelegation(stored);
  const isOwn = sight === undefined || Boolean(responder && isSamePerson(responder, shown.person));
  return isOwn ? shown : { ...shown, reason: null };
}

/** The operations on delegations, by the name of the person in the form in which names are compared. */
export function createDelegationService({ store, clock }: Omit<ServiceDependencies, 'newId'>) {
  const documents = createDocumentService({ store, clock });
  return {
    /** Sets who approves in a person's place. `isNew`: nobody did before. @throws ServiceError 400, 403 */
    async put(caller: Caller, person: string, request: DelegationRequest, preconditions: Preconditions = {}) {
      requireDelegationOf(caller, person);
      const { to, reason = null } = request;
      if (person.startsWith(groupPrefix)) throw invalid('person', 'person must be the name of a person, not of a group.');
      if (to.startsWith(groupPrefix)) throw invalid('to', 'to must be the name of a person, not of a group.');
      if (isSamePerson(person, to)) throw invalid('to', 'to must be another person.');
      const from = request.from === undefined ? null : new Date(request.from).toISOString();
      const until = new Date(request.until).toISOString();
      if (new Date(until) <= clock()) throw invalid('until', 'until must be in the future.');
      if (from !== null && from >= until) throw invalid('until', 'until must be after from.');
      const document = { person: person.trim(), to: to.trim(), from, until, reason };
      const { stored, isNew } = await documents.put(caller, delegationNoun, nameKey(person), document, preconditions);
      return { delegation: shownDelegation(stored), isNew };
    },

    /** A person's delegation. @throws ServiceError 404 */
    get: async (caller: Caller, person: string): Promise<Delegation> =>
      seenBy(caller, await documents.get(caller, delegationNoun, nameKey(person))),

    /** Ends a person's delegation. @throws ServiceError 403, 404 */
    async remove(caller: Caller, person: string, preconditions: Preconditions = {}): Promise<void> {
      requireDelegationOf(caller, person);
      await documents.remove(caller, delegationNoun, nameKey(person), preconditions);
    },

    /** A page of the tenant's delegations, by person. The read is cancelled by `signal`. */
    async list(caller: Caller, query: { limit?: number; cursor?: string }, signal: AbortSignal) {
      const { items, next_cursor } = await documents.page(caller, delegationNoun, query, signal);
      return { delegations: items.map((stored) => seenBy(caller, stored)), next_cursor };
    },
  };
}

export type DelegationService = ReturnType<typeof createDelegationService>;
