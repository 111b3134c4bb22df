import { routes } from '../model/api.ts';
import type { KeyService } from '../service/keys.ts';
import type { HandoffMount } from './mount.ts';
import { idempotencyOf } from './packets.ts';

/** How long a rotated key remains valid by default, in seconds. */
const defaultOverlapSeconds = 3600;

/** Mounts the routes of API keys. */
export function mountKeys(mount: HandoffMount, keys: KeyService): void {
  mount(routes.createKey, ({ body }, { caller, headers, rawBody }) =>
    keys.createKey(caller, body, idempotencyOf(headers, 'POST /keys', rawBody)),
  );
  mount(routes.rotateKey, ({ params, body }, { caller, headers, rawBody }) =>
    keys.rotateKey(
      caller,
      params.id,
      body?.overlap_seconds ?? defaultOverlapSeconds,
      idempotencyOf(headers, `POST /keys/${params.id}/rotate`, rawBody),
    ),
  );
  mount(routes.listKeys, (_, { caller }) => keys.keysOf(caller));
  mount(routes.getOwnKey, (_, { caller }) => keys.ownKey(caller));
  mount(routes.deleteKey, ({ params }, { caller }) => keys.revokeKey(caller, params.id));
  mount(routes.listTenantKeys, ({ params }) => keys.keysOfTenant(params.id));
}
