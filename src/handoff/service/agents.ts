import type { Clock } from '../../kit/clock.ts';
import type { SeenAgent } from '../store/agents.ts';
import type { Page } from '../store/page-size.ts';
import type { Store } from '../store/store.ts';

/** The most seen agents that wait to be written; further ones are dropped until the next write. */
const maxWaiting = 10_000;

export type AgentService = ReturnType<typeof createAgentService>;

/**
 * Records which agents a tenant's requests have named, and when. It collects them and writes them together: a write per
 * request would cost more than the request itself.
 */
export function createAgentService(store: Store, clock: Clock) {
  let waiting = new Map<string, SeenAgent>();
  let writing: Promise<unknown> = Promise.resolve();

  /** Writes the recorded agents; returns how many there were. */
  async function write(): Promise<number> {
    const written = waiting;
    waiting = new Map();
    const current = writing
      .then(() => store.agents.recordSeen([...written.values()]))
      .catch((error: unknown) => {
        // Nothing that was seen is lost, and what was seen since is later.
        waiting = new Map([...written, ...waiting].slice(-maxWaiting));
        throw error;
      });
    writing = current.catch(() => undefined);
    await current;
    return written.size;
  }

  return {
    /** Records that a request named an agent. It is written within a second, and before any `page`. */
    seen(tenant: number, agentId: string): void {
      const agent_id = agentId.toWellFormed();
      const name = `${tenant} ${agent_id}`;
      if (waiting.size >= maxWaiting && !waiting.has(name)) return;
      waiting.set(name, { tenant, agent_id, last_seen_at: clock().toISOString() });
    },
    write,
    /** A page of a tenant's agents. The read is cancelled by `signal`. */
    async page(tenant: number, page: Page, signal: AbortSignal) {
      await write();
      return store.of(tenant, signal).agents.page(page);
    },
  };
}
