import type { TenantService } from '../service/tenants.ts';
import { handlersOf } from './handlers.ts';

/** The handlers of the routes of tenants. */
export const tenantHandlers = (tenants: TenantService) =>
  handlersOf({
    createTenant: ({ body }, { caller }) => tenants.create(caller, body),
    listTenants: () => tenants.list(),
    getTenant: ({ params }) => tenants.find(params.id),
    patchTenant: ({ params, body }, { caller }) => tenants.change(caller, params.id, body),
    deleteTenant: ({ params }, { caller }) => tenants.remove(caller, params.id),
  });
