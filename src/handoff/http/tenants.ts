import { routes } from '../model/api.ts';
import type { TenantService } from '../service/tenants.ts';
import type { HandoffMount } from './mount.ts';

/** Mounts the routes of tenants. */
export function mountTenants(mount: HandoffMount, tenants: TenantService): void {
  mount(routes.createTenant, ({ body }, { caller }) => tenants.create(caller, body));
  mount(routes.listTenants, () => tenants.list());
  mount(routes.getTenant, ({ params }) => tenants.find(params.id));
  mount(routes.patchTenant, ({ params, body }, { caller }) => tenants.change(caller, params.id, body));
  mount(routes.deleteTenant, ({ params }, { caller }) => tenants.remove(caller, params.id));
}
