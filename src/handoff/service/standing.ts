import { notFound } from '../../kit/errors.ts';
import { isId } from '../../kit/uuid.ts';
import { isSamePerson } from '../model/people.ts';
import { maxStanding, type StandingApproval } from '../model/standing.ts';
import { usesOf } from '../rules/action-case.ts';
import { requireDelegationOf } from '../rules/rights.ts';
import type { StoredDocument } from '../store/documents.ts';
import type { Caller } from './authentication.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { createDocumentService, type DocumentNoun } from './documents.ts';
import { type StoredStanding, storedStanding } from './policy-cache.ts';

const missing = () => notFound('standing approval');
/** Standing approvals as documents. */
export const standingNoun: DocumentNoun = {
  ...{ kind: 'standing', what: 'standing approval', many: 'standing approvals', field: 'standing_id', most: maxStanding, missing },
};

/** Whether a caller sees an approval: one that sees its own sees those of its agents, and those that its person gave. */
const isShown = ({ sight, responder }: Caller, { agent_id, person }: StoredStanding): boolean =>
  sight === undefined || sight.agents.includes(agent_id.toWellFormed()) || Boolean(responder && isSamePerson(responder, person));

/** The operations on what people have approved for later. */
export function createStandingService({ store, clock }: Omit<ServiceDependencies, 'newId'>) {
  const documents = createDocumentService({ store, clock });
  return {
    /** A page of the standing approvals that the caller sees, oldest first. The read is cancelled by `signal`. */
    async list(caller: Caller, query: { limit?: number; cursor?: string }, signal: AbortSignal) {
      const shows = caller.sight && ((stored: StoredDocument) => isShown(caller, storedStanding(stored)));
      const { items, next_cursor } = await documents.page(caller, standingNoun, query, signal, shows);
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
      const standing = storedStanding(await documents.get(caller, standingNoun, id));
      if (!isShown(caller, standing)) throw missing();
      requireDelegationOf(caller, standing.person);
      await documents.remove(caller, standingNoun, id);
    },
  };
}
