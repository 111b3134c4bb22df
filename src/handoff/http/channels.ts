import { HttpResponse } from '../../kit/http/response.ts';
import { routes } from '../model/api.ts';
import type { ChannelService } from '../service/channels.ts';
import type { HandoffMount } from './mount.ts';
import { idempotencyOf } from './packets.ts';
import { counted } from './webhooks.ts';

/** Mounts the routes of channels and their deliveries. */
export function mountChannels(mount: HandoffMount, channels: ChannelService): void {
  mount(routes.createChannel, async ({ body }, { caller, headers, rawBody, origin }) => {
    const { added, replayed } = await channels.create(caller, body, origin, idempotencyOf(headers, 'POST /channels', rawBody));
    return new HttpResponse({ body: added, ...(replayed ? { headers: { 'idempotency-replayed': 'true' } } : {}) });
  });
  mount(routes.listChannels, (_, { caller }) => channels.list(caller));
  mount(routes.getChannel, ({ params }, { caller }) => channels.get(caller, params.id));
  mount(routes.patchChannel, ({ params, body }, { caller, origin }) => channels.change(caller, params.id, body, origin));
  mount(routes.deleteChannel, ({ params }, { caller }) => channels.remove(caller, params.id));
  mount(routes.testChannel, ({ params }, { caller }) => channels.test(caller, params.id));
  mount(routes.listChannelDeliveries, async ({ params, query: { status, limit, offset } }, { caller, signal }) =>
    counted(await channels.deliveries(caller, params.id, status, { limit, offset }, signal)),
  );
  mount(routes.replayChannelDelivery, ({ params }, { caller }) => channels.replay(caller, params.id, params.delivery_id));
}
