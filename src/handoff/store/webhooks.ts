import type { Database } from '../../kit/sql/dialect.ts';
import type { Webhook } from '../model/webhook.ts';
import type { Tables } from './tables.ts';

/** Reads a tenant's webhooks. */
export function createWebhookReads({ reads }: Database<Tables>) {
  return {
    /** The webhooks that are not removed, oldest first. */
    async list(tenant: number): Promise<Webhook[]> {
      const rows = await reads
        .selectFrom('webhooks')
        .select(['id', 'url', 'events', 'active', 'disabled_reason', 'created_at'])
        .where('tenant', '=', tenant)
        .where('removed_at', 'is', null)
        .orderBy('seq')
        .execute();
      return rows.map(({ events, active, ...rest }) => ({ ...rest, events: JSON.parse(events), active: active === 1 }));
    },
    /** The `seq` of a webhook, removed or not; undefined when it is unknown. */
    async number(tenant: number, id: string): Promise<number | undefined> {
      return (await reads.selectFrom('webhooks').select('seq').where('id', '=', id).where('tenant', '=', tenant).executeTakeFirst())?.seq;
    },
  };
}
