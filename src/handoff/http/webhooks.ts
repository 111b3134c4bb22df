import { momentOf } from '../../kit/dates.ts';
import { HttpResponse } from '../../kit/http/response.ts';
import type { WebhookService } from '../service/webhooks.ts';
import { handlersOf } from './handlers.ts';
import { idempotencyOf } from './headers.ts';

/** The handlers of the routes of webhooks and their deliveries. */
export const webhookHandlers = (webhooks: WebhookService) =>
  handlersOf({
    createWebhook: async ({ body }, context) => {
      const { added, replayed } = await webhooks.create(context.caller, body, idempotencyOf(context, 'POST /hooks'));
      return new HttpResponse({ body: added, ...(replayed ? { headers: { 'idempotency-replayed': 'true' } } : {}) });
    },
    listWebhooks: (_, { caller }) => webhooks.list(caller),
    patchWebhook: ({ params, body }, { caller }) => webhooks.change(caller, params.id, body),
    deleteWebhook: ({ params }, { caller }) => webhooks.remove(caller, params.id),
    pingWebhook: ({ params }, { caller }) => webhooks.ping(caller, params.id),

    listDeliveries: async ({ params, query: { status, limit, offset } }, { caller, signal }) =>
      counted(await webhooks.deliveries(caller, params.id, status, { limit, offset }, signal)),
    getDelivery: ({ params }, { caller }) => webhooks.delivery(caller, params.id, params.delivery_id),
    listDeadLetters: async ({ query: { webhook_id, limit, offset } }, { caller, signal }) =>
      counted(await webhooks.deadLetters(caller, webhook_id, { limit, offset }, signal)),
    replayDeadLetter: async ({ params }, { caller }) => {
      const delivery = await webhooks.replay(caller, params.delivery_id);
      return { ...delivery, delivery_id: delivery.id, replayed: true };
    },
    retryAll: ({ body = {} }, { caller }) => {
      const { since, until, ...rest } = body;
      const [first, last] = [since, until].map(momentOf);
      return webhooks.retryAll(caller, { ...rest, since: first, until: last });
    },
  });

/** A page as an array, with the total in the header `X-Total-Count`. */
export function counted<One>({ deliveries, total }: { deliveries: One[]; total: number }) {
  return new HttpResponse({ body: deliveries, headers: { 'x-total-count': String(total) } });
}
