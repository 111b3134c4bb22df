import { routes } from '../model/api.ts';
import type { AgentService } from '../service/agents.ts';
import type { HandoffMount } from './mount.ts';

/** Mounts the route of agents. */
export function mountAgents(mount: HandoffMount, agents: AgentService): void {
  mount(routes.listAgents, async ({ query: { limit, offset } }, { caller, signal }) => {
    const { agents: page, total } = await agents.page(caller.tenant_number, { limit, offset }, signal);
    return { agents: page, total, limit, offset };
  });
}
