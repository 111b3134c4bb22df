import type { KeyService } from '../service/keys.ts';
import { handlersOf } from './handlers.ts';
import { idempotencyOf } from './headers.ts';

/** How long a rotated key remains valid by default, in seconds. */
const defaultOverlapSeconds = 3600;

/** The handlers of the routes of API keys. */
export const keyHandlers = (keys: KeyService) =>
  handlersOf({
    createKey: ({ body }, context) => keys.createKey(context.caller, body, idempotencyOf(context, 'POST /keys')),
    rotateKey: ({ params, body }, context) =>
      keys.rotateKey(
        context.caller,
        params.id,
        body?.overlap_seconds ?? defaultOverlapSeconds,
        idempotencyOf(context, `POST /keys/${params.id}/rotate`),
      ),
    listKeys: (_, { caller }) => keys.keysOf(caller),
    getOwnKey: (_, { caller }) => keys.ownKey(caller),
    deleteKey: ({ params }, { caller }) => keys.revokeKey(caller, params.id),
    listTenantKeys: ({ params }) => keys.keysOfTenant(params.id),
  });
