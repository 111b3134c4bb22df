import type { Mount } from '../../kit/http/mount.ts';
import { routes } from '../model/api.ts';
import type { Caller } from '../service/access.ts';
import type { AgentService } from '../service/agents.ts';

/** Taking work over HTTP. */
export function mountWork(mount: Mount<Caller>, agents: AgentService): void {
  mount(routes.listAgents, async ({ query: { limit, offset } }, { caller }) => {
    const { agents: page, total } = await agents.page(caller.tenant_number, { limit, offset });
    return { agents: page, total, limit, offset };
  });
}
