import type { Mount } from '../../kit/http/mount.ts';
import { routes } from '../model/api.ts';
import type { AccessService } from '../service/access.ts';
import type { Caller } from '../service/authentication.ts';
import type { Store } from '../store/store.ts';
import { idempotencyOf } from './packets.ts';

/** How long a rotated key remains valid by default, in seconds. */
const defaultOverlapSeconds = 3600;

/** Mounts the routes of keys and tenants. */
export function mountAccess(mount: Mount<Caller>, access: AccessService, store: Store): void {
  mount(routes.createKey, ({ body }, { caller, headers, rawBody }) =>
    access.createKey(caller, body, idempotencyOf(headers, 'POST /keys', rawBody)),
  );
  mount(routes.rotateKey, ({ params, body }, { caller, headers, rawBody }) =>
    access.rotateKey(
      caller,
      params.id,
      body?.overlap_seconds ?? defaultOverlapSeconds,
      idempotencyOf(headers, `POST /keys/${params.id}/rotate`, rawBody),
    ),
  );
  mount(routes.listKeys, (_, { caller }) => access.keysOf(caller));
  mount(routes.deleteKey, async ({ params }, { caller }) => {
    await access.revokeKey(caller, params.id);
    return undefined;
  });

  mount(routes.createTenant, ({ body }, { caller }) => access.createTenant(caller, body));
  mount(routes.listTenants, () => store.tenants.list());
  mount(routes.getTenant, ({ params }) => access.tenant(params.id));
  mount(routes.patchTenant, ({ params, body }, { caller }) => access.changeTenant(caller, params.id, body));
  mount(routes.deleteTenant, async ({ params }, { caller }) => {
    await access.deleteTenant(caller, params.id);
    return undefined;
  });
  mount(routes.listTenantKeys, ({ params }) => access.keysOfTenant(params.id));
}
