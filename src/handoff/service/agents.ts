import type { Clock } from '../../kit/clock.ts';
import type { Agent } from '../model/work-routes.ts';
import type { SeenAgent } from '../store/agents.ts';
import type { Store } from '../store/store.ts';

/** How many agents may wait to be noted; beyond, the oldest are noted at once. */
const maxWaiting = 10_000;

/** Which agents a tenant's requests have named, and when. */
export interface AgentService {
  /** Notes that a request named an agent. It is written within a second, and at once before it is asked for. */
  saw(tenant: number, agentId: string): void;
  /** Writes what was noted; gives how many agents that were. */
  write(): Promise<number>;
  /** A page of a tenant's agents. `signal`: nobody waits for it any more. */
  page(tenant: number, page: { limit: number; offset: number }, signal: AbortSignal): Promise<{ agents: Agent[]; total: number }>;
}

/** Notes agents as they are named, and writes them together: a row for each request would cost more than the request. */
export function createAgentService(store: Store, clock: Clock): AgentService {
  let waiting = new Map<string, SeenAgent>();
  let writing: Promise<unknown> = Promise.resolve();

  async function write(): Promise<number> {
    const seen = [...waiting.values()];
    waiting = new Map();
    const mine = writing.then(() => store.sawAgents(seen));
    writing = mine.catch(() => undefined);
    await mine;
    return seen.length;
  }

  return {
    saw(tenant, agentId) {
      if (waiting.size >= maxWaiting) return;
      const agent_id = agentId.toWellFormed();
      waiting.set(`${tenant} ${agent_id}`, { tenant, agent_id, last_seen_at: clock().toISOString() });
    },
    write,
    async page(tenant, page, signal) {
      await write();
      return store.of(tenant, signal).agents.page(page);
    },
  };
}
