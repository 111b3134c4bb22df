import type { Mount } from '../../kit/http/mount.ts';
import { routes } from '../model/api.ts';
import type { Caller } from '../service/authentication.ts';
import type { TenantService } from '../service/tenants.ts';

/** Mounts the routes of tenants. */
export function mountTenants(mount: Mount<Caller>, tenants: TenantService): void {
  mount(routes.createTenant, ({ body }, { caller }) => tenants.create(caller, body));
  mount(routes.listTenants, () => tenants.list());
  mount(routes.getTenant, ({ params }) => tenants.find(params.id));
  mount(routes.patchTenant, ({ params, body }, { caller }) => tenants.change(caller, params.id, body));
  mount(routes.deleteTenant, async ({ params }, { caller }) => {
    await tenants.remove(caller, params.id);
    return undefined;
  });
}
