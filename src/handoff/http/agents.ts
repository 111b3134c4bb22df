import type { AgentService } from '../service/agents.ts';
import { handlersOf } from './handlers.ts';

/** The handlers of the route of agents. */
export const agentHandlers = (agents: AgentService) =>
  handlersOf({
    listAgents: async ({ query: { limit, offset } }, { caller, signal }) => {
      const { agents: page, total } = await agents.page(caller, { limit, offset }, signal);
      return { agents: page, total, limit, offset };
    },
  });
