import type { AgentService } from '../service/agents.ts';

/** How often the agents that were seen are written, in milliseconds. */
const everyMs = 1000;

/** Writes the agents that were seen. Gives the milliseconds until the next round. */
export function createAgentWriter(agents: AgentService): () => Promise<number> {
  return async () => {
    await agents.write();
    return everyMs;
  };
}
