import { conflict } from '../../kit/errors.ts';
import type { Row } from '../../kit/sql/dialect.ts';
import { openedAnswer, type SentKey, sealedAnswer } from '../rules/idempotency.ts';
import type { Writes } from './engine/group.ts';
import { inSession } from './engine/in-session.ts';
import type { Journal } from './engine/journal.ts';
import type { ReadParts } from './noun.ts';
import type { RowOf } from './tables.ts';

declare module './tables.ts' {
  interface Tables {
    idempotency: {
      tenant: number;
      /** A digest of the key and of the family of the key that sent it (`storedKeyOf`). */
      key: string;
      /** Method, path and body of the request. */
      fingerprint: string;
      status: number;
      /** Null where the answer must not be repeated (it has a secret in plain text, or its packet was deleted permanently). */
      body: string | null;
      etag: string | null;
      created_at: string;
    };
    /** Which packets the stored answers contain: when a packet is deleted permanently, so are its answers. */
    idempotency_packets: { tenant: number; packet_id: string; key: string };
  }
}

/** The stored answer that a unit needs. */
export interface IdempotencyNeeds {
  readonly idempotencyKey?: string | undefined;
}

/** A request's idempotency key, and its fingerprint, which differs between different requests. */
export interface Idempotency {
  readonly sent: SentKey;
  /** The key as it is stored. */
  readonly key: string;
  readonly fingerprint: string;
  /** What the sender calls the key. */
  readonly name: 'Idempotency-Key' | 'messageId';
}

/** The stored answer to a request with an idempotency key. */
type IdempotencyRecord = Pick<RowOf<'idempotency'>, 'fingerprint' | 'status' | 'body' | 'etag'>;

/** A tenant's answers by idempotency key: those that units named, and new ones. */
export class IdempotencyBuffer {
  readonly tenant: number;
  readonly found = new Map<string, IdempotencyRecord>();
  readonly fresh = new Map<string, IdempotencyRecord & Row>();
  /** Which packets the new answers contain. */
  packets: { tenant: number; packet_id: string; key: string }[] = [];
  readonly #journal: Journal;

  constructor(tenant: number, journal: Journal) {
    this.tenant = tenant;
    this.#journal = journal;
  }

  /**
   * The answer to repeat for an idempotency key; undefined when the request has no key, or a new one.
   * @throws ServiceError 409 when the key belongs to a different request, or its answer may not be repeated
   */
  repeated(idempotency: Idempotency | undefined): (IdempotencyRecord & { body: string }) | undefined {
    if (idempotency === undefined) return undefined;
    const record = this.fresh.get(idempotency.key) ?? this.found.get(idempotency.key);
    if (record === undefined) return undefined;
    if (record.fingerprint !== idempotency.fingerprint)
      throw conflict(`This ${idempotency.name} was used for another request; use a new one.`);
    const { body } = record;
    if (body === null) throw conflict('This request was already processed, and its answer is no longer available.');
    return { ...record, body: openedAnswer(body, idempotency.sent) };
  }

  /** Erases the new answers that contain a packet. The keys stay used. */
  erase(packetId: string): void {
    for (const { key } of this.packets.filter(({ packet_id }) => packet_id === packetId))
      this.fresh.set(key, { ...this.fresh.get(key)!, body: null });
    this.packets = this.packets.filter(({ packet_id }) => packet_id !== packetId);
  }

  /** Stores the answer to a request, with an encrypted lease token. It is erased when one of its packets is deleted permanently. */
  remember(
    { key, fingerprint, sent }: Idempotency,
    { status, body, etag }: Omit<IdempotencyRecord, 'fingerprint'>,
    now: Date,
    packetIds: readonly string[] = [],
  ): void {
    const { tenant } = this;
    const sealed = body === null ? null : sealedAnswer(body, sent);
    this.#journal.set(this.fresh, key, { tenant, key, fingerprint, status, body: sealed, etag, created_at: now.toISOString() });
    for (const packet_id of packetIds) this.#journal.push(this.packets, { tenant, packet_id, key });
  }
}

/** Answers that are repeated when a request comes again with the same idempotency key. */
const writes: Writes<IdempotencyNeeds, IdempotencyBuffer> = {
  needs: { idempotencyKey: true },
  stage: (tenant, { journal }) => new IdempotencyBuffer(tenant, journal),

  async find(session, group) {
    const keys = group.wanted('key', ({ idempotencyKey }) => (idempotencyKey === undefined ? undefined : [idempotencyKey]));
    const rows = await session.find('idempotency', ['tenant', 'key', 'fingerprint', 'status', 'body', 'etag'], keys);
    for (const [tenant, key, fingerprint, status, body, etag] of rows as [number, string, string, number, string | null, string | null][])
      group.of(writes, tenant).found.set(key, { fingerprint, status, body, etag });
  },

  async erase(session, group, erased) {
    for (const { tenant, packet_id } of erased) group.of(writes, tenant).erase(packet_id);
    const kept = await session.find('idempotency_packets', ['tenant', 'key'], erased);
    session.update(
      'idempotency',
      ['tenant', 'key'],
      kept.map(([tenant, key]) => ({ tenant: tenant!, key: key!, body: null })),
    );
    session.remove('idempotency_packets', erased);
  },

  flush(session, group) {
    session.insert(
      'idempotency',
      group.each(writes, ({ fresh }) => [...fresh.values()]),
    );
    session.insert(
      'idempotency_packets',
      group.each(writes, ({ packets }) => packets),
    );
  },
};

function reads({ database }: ReadParts) {
  return {
    all: {
      /** Deletes answers older than `before`, up to `limit`; returns how many. */
      async forget(before: Date, limit: number): Promise<number> {
        const old = await database.reads
          .selectFrom('idempotency')
          // The age is part of the key: another instance may have deleted the answer, and its idempotency key may be in use again.
          .select(['tenant', 'key', 'created_at'])
          .where('created_at', '<', before.toISOString())
          .orderBy('created_at')
          .limit(limit)
          .execute();
        if (old.length === 0) return 0;
        await inSession(database, async (session) => {
          session.remove('idempotency', old);
          // Only of answers that are gone: a key of one of them may be in use again.
          const kept = await session.read(
            'idempotency',
            ['tenant', 'key'],
            old.map(({ tenant, key }) => ({ tenant, key })),
          );
          const used = new Set(kept.map(([tenant, key]) => `${tenant} ${key}`));
          const gone = old.flatMap(({ tenant, key }) => (used.has(`${tenant} ${key}`) ? [] : [{ tenant, key }]));
          session.remove('idempotency_packets', gone);
        });
        return old.length;
      },
    },
  };
}

/** Answers by idempotency key. */
export const idempotency = { writes, reads };
