import type { Clock } from '../../kit/clock.ts';
import type { Agent } from '../model/agent.ts';
import type { SeenAgent } from '../store/agents.ts';
import type { Store } from '../store/store.ts';

/** The most sightings that wait to be written; further ones are dropped until the next write. */
const maxWaiting = 10_000;

/** Records which agents a tenant's requests have named, and when. */
export interface AgentService {
  /** Records that a request named an agent. It is written within a second, and before any `page`. */
  saw(tenant: number, agentId: string): void;
  /** Writes the recorded agents; returns how many there were. */
  write(): Promise<number>;
  /** A page of a tenant's agents. The read is cancelled by `signal`. */
  page(tenant: number, page: { limit: number; offset: number }, signal: AbortSignal): Promise<{ agents: Agent[]; total: number }>;
}

/** Collects sightings of agents and writes them together: a write per request would cost more than the request itself. */
export function createAgentService(store: Store, clock: Clock): AgentService {
  let waiting = new Map<string, SeenAgent>();
  let writing: Promise<unknown> = Promise.resolve();

  async function write(): Promise<number> {
    const seen = waiting;
    waiting = new Map();
    const current = writing
      .then(() => store.sawAgents([...seen.values()]))
      .catch((error: unknown) => {
        // Nothing that was seen is lost, and what was seen since is later.
        waiting = new Map([...seen, ...waiting].slice(-maxWaiting));
        throw error;
      });
    writing = current.catch(() => undefined);
    await current;
    return seen.size;
  }

  return {
    saw(tenant, agentId) {
      const agent_id = agentId.toWellFormed();
      const name = `${tenant} ${agent_id}`;
      if (waiting.size >= maxWaiting && !waiting.has(name)) return;
      waiting.set(name, { tenant, agent_id, last_seen_at: clock().toISOString() });
    },
    write,
    async page(tenant, page, signal) {
      await write();
      return store.of(tenant, signal).agents.page(page);
    },
  };
}
