/** Which packets a key with `sees: own` sees. */
export interface Sight {
  /** The agents that it acts as: it sees the packets that they send, receive or hold. */
  readonly agents: readonly string[];
  /** Further target agents whose packets it sees. */
  readonly queues: readonly string[];
}

/** Whose data is read, and how much of it. */
export interface Viewer {
  /** The tenant's number in the store. */
  readonly tenant_number: number;
  /** Which packets a key with `sees: own` sees; left out: all packets of the tenant. */
  readonly sight?: Sight | undefined;
}

/** The agents of a packet. `claimant` holds it, or held it last. */
export interface PacketAgents {
  readonly source_agent: string | null;
  readonly target_agent: string | null;
  readonly claimant: string | null;
}

/** What a key sees: `queues` is null for a key that sees everything. */
export function sightOf({ agents, queues }: { readonly agents: readonly string[] | null; readonly queues: readonly string[] | null }) {
  if (queues === null) return undefined;
  // As columns have them.
  const stored = (names: readonly string[]) => names.map((name) => name.toWellFormed());
  return { agents: stored(agents ?? []), queues: stored(queues) };
}

/** The target agents of packets that a key with this sight sees. */
export const seenTargets = ({ agents, queues }: Sight): readonly string[] => [...new Set([...agents, ...queues])];

/** Whether a packet of these agents is seen. Without a sight all are. */
export function isSeen(sight: Sight | undefined, { source_agent, target_agent, claimant }: PacketAgents): boolean {
  if (sight === undefined) return true;
  const isOwn = (agent: string | null) => agent !== null && sight.agents.includes(agent.toWellFormed());
  if (isOwn(source_agent) || isOwn(target_agent) || isOwn(claimant)) return true;
  return target_agent !== null && sight.queues.includes(target_agent.toWellFormed());
}

/** The agents of a packet as the API has it. */
export const agentsOf = ({
  metadata,
  claimed_by,
}: {
  readonly metadata: { readonly source_agent: { readonly id: string }; readonly target_agent: { readonly id: string } };
  readonly claimed_by: { readonly agent_id: string } | null;
}): PacketAgents => ({
  source_agent: metadata.source_agent.id,
  target_agent: metadata.target_agent.id,
  claimant: claimed_by?.agent_id ?? null,
});

/** What identifies a sight, where reads of callers with the same one are shared. */
export const sightKey = ({ sight }: Pick<Viewer, 'sight'>): string => (sight === undefined ? '' : JSON.stringify(sight));
