import { ServiceError } from '../../kit/errors.ts';
import { scopes as allScopes, type Scope } from '../model/common.ts';

/** What a key may do. Null or left out: everything of its kind. */
export interface Rights {
  readonly scopes?: readonly Scope[] | null;
  /** The ids of the agents that it may act as. */
  readonly agents?: readonly string[] | null;
  /** The person in whose name it may answer. */
  readonly responder?: string | null;
}

const forbidden = (detail: string, field: string | null = null) => new ServiceError('FORBIDDEN', detail, { field });

/** Requires one of the scopes. @throws ServiceError 403 that names them */
export function requireScope({ scopes }: Rights, ...sufficient: readonly Scope[]): void {
  if (!scopes || sufficient.some((scope) => scopes.includes(scope))) return;
  throw forbidden(`This needs a key with the scope ${sufficient.join(' or ')}; this key has ${scopes.join(', ')}.`);
}

/** Requires that the key may act as the agent. @throws ServiceError 403 */
export function requireAgent({ agents }: Rights, agent: string): void {
  if (!agents || agents.includes(agent)) return;
  throw forbidden(`This key may not act as ${agent}, only as ${agents.join(', ')}.`);
}

/**
 * The agent in whose name a request acts: the one that it names, else the only one that the key may act as; undefined
 * when the key may act as any and the request names none.
 * @throws ServiceError 403 when the key may not act as it, or may act as several and the request names none
 */
export function actingAgent(rights: Rights, named: string | undefined): string | undefined {
  const { agents } = rights;
  if (named === undefined && agents && agents.length > 1)
    throw forbidden(`Name the agent in X-Agent-Id: this key may act as ${agents.join(', ')}.`);
  if (named !== undefined) requireAgent(rights, named);
  return named ?? agents?.[0];
}

/** Requires that the key may answer in the person's name. @throws ServiceError 403 */
export function requireResponder({ responder }: Rights, respondedBy: string): void {
  if (!responder || responder === respondedBy) return;
  throw forbidden(`This key answers as ${responder}; responded_by must be that.`, 'responded_by');
}

/** Requires that a key has all rights of another one, which it creates, rotates or revokes. @throws ServiceError 403 */
export function requireWithin(own: Rights, other: Rights): void {
  const missing = own.scopes ? (other.scopes ?? allScopes).filter((scope) => !own.scopes!.includes(scope)) : [];
  if (missing.length > 0)
    throw forbidden(`A key can't manage keys with more rights than it has: this key lacks the scope ${missing.join(', ')}.`, 'scopes');
  if (own.agents && !other.agents?.every((agent) => own.agents!.includes(agent)))
    throw forbidden(`A key can't manage keys with more rights than it has: this key may only act as ${own.agents.join(', ')}.`, 'agents');
  if (own.responder && other.responder !== own.responder)
    throw forbidden(`A key can't manage keys with more rights than it has: this key answers as ${own.responder}.`, 'responder');
}
