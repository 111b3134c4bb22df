import type { Database } from '../../kit/sql/dialect.ts';
import type { DisabledReason, Webhook, WebhookEvent } from '../model/webhook.ts';
import type { Kind } from './engine/group.ts';
import { Table, TableBuffer } from './engine/table-buffer.ts';
import type { Tables } from './tables.ts';

/** The webhooks that a unit needs. */
export interface WebhookNeeds {
  /** Webhooks to lock. */
  readonly webhooks?: readonly string[];
  /** Whether it needs all webhooks of the tenant. */
  readonly allWebhooks?: boolean;
  /** Whether it appends events of packets, which are sent to the tenant's webhooks. */
  readonly announces?: boolean;
}

/** A stored webhook. Times are ISO 8601 texts. */
export interface StoredWebhook {
  /** Its `seq`; 0 before it is inserted. */
  readonly seq: number;
  readonly id: string;
  readonly url: string;
  readonly events: readonly WebhookEvent[];
  readonly secret: string;
  /** The previous secret, and until when deliveries are also signed with it. */
  readonly old_secret: string | null;
  readonly old_secret_until: string | null;
  readonly active: boolean;
  readonly disabled_reason: DisabledReason | null;
  /** Since when all of its deliveries have failed; null: the last one succeeded, or there was none. */
  readonly failing_since: string | null;
  readonly created_at: string;
  readonly updated_at: string;
  readonly removed_at: string | null;
}

/** A webhook as callers see it, without its secret. */
export function shownWebhook({ id, url, events, active, disabled_reason, created_at }: StoredWebhook): Webhook {
  return { id, url, events: [...events], active, disabled_reason, created_at };
}

const table = new Table<StoredWebhook>({
  name: 'webhooks',
  columns: [
    'seq',
    'id',
    'url',
    'events',
    'secret',
    'old_secret',
    'old_secret_until',
    'active',
    'disabled_reason',
    'failing_since',
    'created_at',
    'updated_at',
    'removed_at',
  ],
  key: 'seq',
  decode: (row) => ({ ...row, events: JSON.parse(row.events as string), active: row.active === 1 }) as unknown as StoredWebhook,
  encode: (webhook) => ({ ...webhook, events: JSON.stringify(webhook.events), active: webhook.active ? 1 : 0 }),
  fresh: ({ seq: _, ...row }, tenant) => ({ tenant, ...row }),
});

/** A tenant's webhooks that are not removed, by id. */
export class WebhookBuffer extends TableBuffer<string, StoredWebhook> {
  /** Whether all webhooks of the tenant were read. */
  isComplete = false;

  /** The number of webhooks, including new ones. */
  count(): number {
    return this.found.size + this.inserted.length;
  }

  /** The webhooks that subscribe to an event type. */
  subscribedTo(type: string): StoredWebhook[] {
    if (!this.isComplete) throw new Error('A unit appends events without `announces`.');
    return this.all().filter(({ active, events }) => active && (events as readonly string[]).includes(type));
  }
}

/** Webhooks. Units that announce events read all of them without a lock but in the same transaction, so that a new webhook counts at once. */
export const webhooks: Kind<WebhookNeeds, WebhookBuffer> = {
  stage: (_tenant, { journal }) => new WebhookBuffer(journal),

  async find(session, group) {
    const locked = group.wanted((unit) => unit.webhooks).map(([tenant, id]) => ({ tenant, id }));
    const tenants = new Set(group.units.filter(({ unit }) => unit.announces || unit.allWebhooks).map(({ tenant }) => tenant));
    const complete = [...tenants].map((tenant) => ({ tenant, removed_at: null }));
    const [named, all] = await Promise.all([table.find(session, locked, ['tenant']), table.read(session, complete, ['tenant'])]);
    for (const tenant of tenants) group.of(webhooks, tenant).isComplete = true;
    // Locked rows last, because they are the current versions.
    for (const { stored, more } of [...all, ...named]) {
      const { found } = group.of(webhooks, more[0] as number);
      if (stored.removed_at === null) found.set(stored.id, stored);
      else found.delete(stored.id);
    }
  },

  flush: (session, group) => table.flush(session, group, webhooks),
};

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
