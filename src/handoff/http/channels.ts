import { HttpResponse } from '../../kit/http/response.ts';
import type { ChannelService } from '../service/channels.ts';
import { handlersOf } from './handlers.ts';
import { idempotencyOf } from './headers.ts';
import { counted } from './webhooks.ts';

/** The handlers of the routes of channels and their deliveries. */
export const channelHandlers = (channels: ChannelService) =>
  handlersOf({
    createChannel: async ({ body }, context) => {
      const { added, replayed } = await channels.create(context.caller, body, context.origin, idempotencyOf(context, 'POST /channels'));
      return new HttpResponse({ body: added, ...(replayed ? { headers: { 'idempotency-replayed': 'true' } } : {}) });
    },
    listChannels: (_, { caller }) => channels.list(caller),
    getChannel: ({ params }, { caller }) => channels.get(caller, params.id),
    patchChannel: ({ params, body }, { caller, origin }) => channels.change(caller, params.id, body, origin),
    deleteChannel: ({ params }, { caller }) => channels.remove(caller, params.id),
    testChannel: ({ params }, { caller }) => channels.test(caller, params.id),
    listChannelDeliveries: async ({ params, query: { status, limit, offset } }, { caller, signal }) =>
      counted(await channels.deliveries(caller, params.id, status, { limit, offset }, signal)),
    replayChannelDelivery: ({ params }, { caller }) => channels.replay(caller, params.id, params.delivery_id),
  });
