import type { Mount } from '../../kit/http/mount.ts';
import { routes } from '../model/api.ts';
import type { Caller } from '../service/authentication.ts';
import type { KeyService } from '../service/keys.ts';
import { idempotencyOf } from './packets.ts';

/** How long a rotated key remains valid by default, in seconds. */
const defaultOverlapSeconds = 3600;

/** Mounts the routes of API keys. */
export function mountKeys(mount: Mount<Caller>, keys: KeyService): void {
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
  mount(routes.deleteKey, async ({ params }, { caller }) => {
    await keys.revokeKey(caller, params.id);
    return undefined;
  });
  mount(routes.listTenantKeys, ({ params }) => keys.keysOfTenant(params.id));
}
