import { ServiceError } from '../../kit/errors.ts';
import { scopes as allScopes, defaultScopes, type Scope } from '../model/common.ts';
import { isSamePerson } from '../model/people.ts';
import type { HandoffRoute } from '../model/route.ts';

/** What a key may do. Null or left out: everything of its kind. */
export interface Rights {
  readonly scopes?: readonly Scope[] | null;
  /** The ids of the agents that it may act as. */
  readonly agents?: readonly string[] | null;
  /** The person in whose name it may answer. */
  readonly responder?: string | null;
  /** Set for a key that sees its own: the target agents beside its own whose packets it sees and claims. */
  readonly queues?: readonly string[] | null;
}

/** What an act requires of a key: a route, or one of `acts`. */
export type Act = Pick<HandoffRoute, 'access' | 'alternative'>;

/** Acts that are no route of the API. */
export const acts = {
  /** Receiving the changes of packets over MCP. */
  listen: { access: 'read' },
  setPush: { access: 'work' },
  listPushes: { access: 'read' },
  removePush: { access: 'work' },
  /** Sending a push notification, for the key that set its configuration. */
  sendPush: { access: 'read' },
  /** Reading the events of MCP, by asking or by a subscription. */
  pollEvents: { access: 'read' },
  /** Having events of MCP sent to an address. */
  subscribe: { access: 'work' },
  unsubscribe: { access: 'work' },
  /** Making the packets of a schedule, for the key that wrote it. */
  runSchedule: { access: 'work' },
  /** Answering by a link, for the key that made it. */
  answerByLink: { access: 'respond' },
  /** Making a link or a channel that acts for the person whom it names. */
  actForPerson: { access: 'manage' },
} as const satisfies Readonly<Record<string, Act>>;

const forbidden = (detail: string, field: string | null = null) => new ServiceError('FORBIDDEN', detail, { field });

/** The person for whom what a caller makes answers, unless it names another one. */
export const makesFor = (key: Pick<Key, 'responder' | 'kind' | 'scopes'>): string | null => boundTo(key) ?? null;

type Key = Rights & { readonly admin: boolean; readonly kind?: 'key' | 'link' | 'session' | 'token' };

/** The rights each of which suffices for an act. */
export const sufficientScopes = ({ access, alternative }: Act): readonly string[] =>
  alternative === undefined ? [access] : [access, alternative];

/** Whether a key may do an act. */
export function hasRight({ scopes, admin }: Key, act: Act): boolean {
  if (act.access === 'any' || act.access === 'public' || act.access === 'link' || act.access === 'sign-in') return true;
  if (act.access === 'admin') return admin;
  // The one scope that a key does not have unless it is named.
  if (act.access === 'erase') return admin || scopes?.includes('erase') === true;
  return !scopes || scopes.some((scope) => sufficientScopes(act).includes(scope));
}

/** Requires that a key may do an act. Every way to the act asks here. @throws ServiceError 403 that names the scopes that suffice */
export function requireRight(key: Key, act: Act): void {
  if (hasRight(key, act)) return;
  if (act.access === 'admin') throw forbidden(key.kind === 'session' ? 'This needs the right admin.' : 'This needs an admin key.');
  const [needed, has] = [sufficientScopes(act).join(' or '), (key.scopes ?? defaultScopes).join(', ') || 'none'];
  if (key.kind === 'session') throw forbidden(`This needs the right ${needed}; you have ${has}.`);
  const holder = key.kind === 'token' ? 'token' : 'key';
  throw forbidden(`This needs a ${holder} with the scope ${needed}; this ${holder} has ${has}.`);
}

/** Requires that the key may act as the agent. @throws ServiceError 403 */
export function requireAgent({ agents }: Rights, agent: string): void {
  if (!agents || agents.includes(agent)) return;
  throw forbidden(`This key may not act as ${agent}, only as ${agents.join(', ')}.`);
}

/** Requires that the key sees the packets for this agent; null: for any. @throws ServiceError 403 that names its queues */
export function requireQueue({ agents, queues }: Rights, agent: string | null): void {
  if (!queues) return;
  const seen = [...new Set([...(agents ?? []), ...queues])];
  if (agent !== null && seen.includes(agent)) return;
  throw forbidden(`This key may only claim from its queues: ${seen.join(', ')}. Name one of them in target_agent.`, 'target_agent');
}

/** The agent that a key acts as when a request names none: the only one that it may act as. */
export const onlyAgent = ({ agents }: Rights): string | undefined => (agents?.length === 1 ? agents[0] : undefined);

/**
 * The agent in whose name a request acts: the one that it names, else the only one that the key may act as; undefined
 * when the key may act as any and the request names none.
 * @throws ServiceError 403 when the key may not act as it, or may act as several and the request names none
 */
export function actingAgent(rights: Rights, named: string | undefined): string | undefined {
  const { agents } = rights;
  if (named === undefined && agents && agents.length > 1)
    throw forbidden(`Name the agent that acts: this key may act as ${agents.join(', ')}.`);
  if (named !== undefined) requireAgent(rights, named);
  return named ?? agents?.[0];
}

/** Requires that the key may change an agent's contract: by the scope manage, or since it may act as that agent. @throws ServiceError 403 */
export function requireContractOf({ scopes, agents }: Rights, agent: string): void {
  if (!scopes || scopes.includes('manage') || agents?.includes(agent)) return;
  throw forbidden(`This needs a key with the scope manage, or one whose agents contain ${agent}.`);
}

/** Requires that the key may change a person's delegation: by the scope manage, or since it answers as that person. @throws ServiceError 403 */
export function requireDelegationOf({ scopes, responder }: Rights, person: string): void {
  if (!scopes || scopes.includes('manage') || (responder && isSamePerson(responder, person))) return;
  throw forbidden('This needs a key with the scope manage, or one with that responder.');
}

/** The person in whose name alone a caller answers, and for whom alone it makes links, channels and keys. */
function boundTo({ responder, kind, scopes }: Pick<Key, 'responder' | 'kind' | 'scopes'>): string | undefined {
  // A person who manages sets up the links, channels and keys of others, as a key with the scope manage does.
  if (kind === 'session' && (!scopes || scopes.includes('manage'))) return undefined;
  return responder || undefined;
}

/** Requires that the key may answer in the person's name, which `field` has. @throws ServiceError 403 */
export function requireResponder({ responder, kind }: Pick<Key, 'responder' | 'kind'>, name: string, field: 'responded_by'): void {
  if (responder && !isSamePerson(responder, name)) throw foreignName(responder, kind, field);
}

/** Whether the key may make what answers in the person's name; null: in any name. */
export function mayMakeFor(key: Pick<Key, 'responder' | 'kind' | 'scopes'>, name: string | null): boolean {
  const own = boundTo(key);
  return own === undefined || (name !== null && isSamePerson(own, name));
}

/** Requires that the key may make what answers in the person's name; null: in any name. @throws ServiceError 403 */
export function requireMakerFor(key: Pick<Key, 'responder' | 'kind' | 'scopes'>, name: string | null): void {
  if (!mayMakeFor(key, name)) throw foreignName(key.responder!, key.kind, 'responder');
}

const foreignName = (name: string, kind: Key['kind'], field: 'responded_by' | 'responder') =>
  forbidden(
    kind === 'session' ? `You may only answer as ${name}.` : `This ${kind === 'token' ? 'token' : 'key'} may only answer as ${name}.`,
    field,
  );

/** Requires that what a caller makes may act longer than the caller's credential is valid. @throws ServiceError 403 for a token */
export function requireLasting({ kind }: Pick<Key, 'kind'>): void {
  if (kind !== 'token') return;
  throw forbidden('A token makes nothing that acts for it once it has expired. Use an API key, or sign in.');
}

/** Requires that a key has all rights of another one, which it creates, rotates or revokes. @throws ServiceError 403 */
export function requireWithin(own: Rights & Pick<Key, 'kind'> & { readonly admin?: boolean }, other: Rights): void {
  const held: readonly Scope[] = own.scopes ?? (own.admin ? allScopes : defaultScopes);
  const missing = (other.scopes ?? defaultScopes).filter((scope) => !held.includes(scope));
  if (missing.length > 0)
    throw forbidden(`A key can't manage keys with more rights than it has: this key lacks the scope ${missing.join(', ')}.`, 'scopes');
  if (own.agents && !other.agents?.every((agent) => own.agents!.includes(agent)))
    throw forbidden(`A key can't manage keys with more rights than it has: this key may only act as ${own.agents.join(', ')}.`, 'agents');
  const responder = boundTo(own);
  if (responder && !(other.responder && isSamePerson(other.responder, responder)))
    throw forbidden(`A key can't manage keys with more rights than it has: this key answers as ${responder}.`, 'responder');
}
