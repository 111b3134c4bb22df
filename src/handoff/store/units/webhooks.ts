import type { Row, Values } from '../../../kit/sql/dialect.ts';
import type { DisabledReason, Webhook, WebhookEvent } from '../../model/webhook.ts';
import type { Journal } from './journal.ts';
import type { Kind } from './transaction.ts';

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

const columns = [
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
] as const;

/** A webhook as callers see it, without its secret. */
export function shownWebhook({ id, url, events, active, disabled_reason, created_at }: StoredWebhook): Webhook {
  return { id, url, events: [...events], active, disabled_reason, created_at };
}

/** A tenant's webhooks, and the changes of units to them. */
export class WebhookTransaction {
  readonly tenant: number;
  readonly found = new Map<string, StoredWebhook>();
  readonly fresh: StoredWebhook[] = [];
  readonly changed = new Map<string, StoredWebhook>();
  readonly #journal: Journal;

  constructor(tenant: number, journal: Journal) {
    this.tenant = tenant;
    this.#journal = journal;
  }

  /** The webhook that the unit names; undefined when it is unknown or removed. */
  get(id: string): StoredWebhook | undefined {
    return this.found.get(id);
  }

  /** All webhooks that are not removed. */
  all(): StoredWebhook[] {
    return [...this.found.values()];
  }

  /** The number of webhooks, including new ones. */
  count(): number {
    return this.found.size + this.fresh.length;
  }

  insert(webhook: StoredWebhook): void {
    this.#journal.push(this.fresh, webhook);
  }

  save(webhook: StoredWebhook): void {
    this.#journal.set(this.changed, webhook.id, webhook);
    if (webhook.removed_at === null) this.#journal.set(this.found, webhook.id, webhook);
    else this.#journal.delete(this.found, webhook.id);
  }
}

/** Webhooks. Units on packets read all of them without a lock but in the same transaction, so that a new webhook counts at once. */
export const webhooks: Kind = {
  async find(session, group) {
    const locked = group.wanted((unit) => unit.webhooks);
    const tenants = new Set(group.units.filter(({ unit }) => unit.packets !== undefined || unit.allWebhooks).map(({ tenant }) => tenant));
    const [named, all] = await Promise.all([
      session.find(
        'webhooks',
        ['tenant', ...columns],
        locked.map(([tenant, id]) => ({ tenant, id })),
      ),
      session.read(
        'webhooks',
        ['tenant', ...columns],
        [...tenants].map((tenant) => ({ tenant, removed_at: null })),
      ),
    ]);
    // Locked rows last, because they are the current versions.
    for (const [tenant, ...values] of [...all, ...named]) {
      const { found } = group.of(tenant as number).webhooks;
      const webhook = storedWebhook(values);
      if (webhook.removed_at === null) found.set(webhook.id, webhook);
      else found.delete(webhook.id);
    }
  },

  async flush(session, group) {
    await session.insert(
      'webhooks',
      group.each(({ tenant, webhooks: { fresh } }) => fresh.map(({ seq: _, ...webhook }) => ({ tenant, ...rowOf(webhook) }))),
    );
    await session.update(
      'webhooks',
      ['seq'],
      group.each(({ webhooks: { changed } }) => [...changed.values()].map(rowOf)),
    );
  },
};

/** A webhook from the values of its columns. */
export function storedWebhook(values: Values): StoredWebhook {
  const row = Object.fromEntries(columns.map((column, index) => [column, values[index]]));
  return { ...row, events: JSON.parse(row.events as string), active: row.active === 1 } as unknown as StoredWebhook;
}

function rowOf<T extends Partial<StoredWebhook>>(webhook: T): Row {
  return { ...webhook, events: JSON.stringify(webhook.events), active: webhook.active ? 1 : 0 } as unknown as Row;
}
