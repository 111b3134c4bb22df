import { notFound } from '../../kit/errors.ts';
import { isId } from '../../kit/uuid.ts';
import { maxStanding, type StandingApproval } from '../model/standing.ts';
import { usesOf } from '../rules/action-case.ts';
import { requireDelegationOf } from '../rules/rights.ts';
import type { Caller } from './authentication.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { createDocumentService, type DocumentNoun } from './documents.ts';
import { storedStanding } from './policy-cache.ts';

const missing = () => notFound('standing approval');
/** Standing approvals as documents. */
export const standingNoun: DocumentNoun = {
  ...{ kind: 'standing', what: 'standing approval', many: 'standing approvals', field: 'standing_id', most: maxStanding, missing },
};

/** The operations on what people have approved for later. */
export function createStandingService({ store, clock }: Omit<ServiceDependencies, 'newId'>) {
  const documents = createDocumentService({ store, clock });
  return {
    /** A page of the tenant's standing approvals, oldest first. The read is cancelled by `signal`. */
    async list(caller: Caller, query: { limit?: number; cursor?: string }, signal: AbortSignal) {
      const { items, next_cursor } = await documents.page(caller, standingNoun, query, signal);
      const uses = await store.of(caller).counters.values(items.map(({ name }) => usesOf(name)));
      const standing_approvals = items.map((stored): StandingApproval => {
        const { id, person, agent_id, tool, scope, arguments_digest, packet_id, expires_at } = storedStanding(stored);
        const own = { id, person, agent_id, tool, scope, arguments_digest, packet_id };
        return { ...own, created_at: stored.created_at, expires_at, uses: uses.get(usesOf(id)) ?? 0 };
      });
      return { standing_approvals, next_cursor };
    },

    /** Revokes a standing approval. @throws ServiceError 403, 404 */
    async remove(caller: Caller, id: string): Promise<void> {
      if (!isId(id)) throw missing();
      const { person } = storedStanding(await documents.get(caller, standingNoun, id));
      requireDelegationOf(caller, person);
      await documents.remove(caller, standingNoun, id);
    },
  };
}
