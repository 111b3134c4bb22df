import type { AgentService } from '../service/agents.ts';

/** How often recorded agents are written, in milliseconds. */
const everyMs = 1000;

/** Makes the job that writes recorded agents. A round returns the milliseconds until the next one. */
export function createAgentWriter(agents: AgentService): () => Promise<number> {
  return async () => {
    await agents.write();
    return everyMs;
  };
}
