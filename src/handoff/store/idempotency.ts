import { conflict, notFound, ServiceError } from '../../kit/errors.ts';
import type { Row } from '../../kit/sql/dialect.ts';
import { openedAnswer, type SentKey, sealedAnswer } from '../rules/idempotency.ts';
import { isSeen, type PacketAgents } from '../rules/sight.ts';
import type { Group, Writes } from './engine/group.ts';
import { inSession } from './engine/in-session.ts';
import type { Journal } from './engine/journal.ts';
import type { Session } from './engine/session.ts';
import type { ReadDependencies } from './noun.ts';
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
      /** Null where the answer must not be repeated (it has a secret in plain text, or its packet was erased; `status` is then 410). */
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

/** What is left of an answer about a packet that is erased. No request that is answered so is stored. */
const erasedAnswer = { status: 410, body: null, etag: null };

/** A tenant's answers by idempotency key: those that units named, and new ones. */
export class IdempotencyBuffer {
  readonly tenant: number;
  readonly found = new Map<string, IdempotencyRecord>();
  readonly fresh = new Map<string, IdempotencyRecord & Row>();
  /** Which packets the new answers contain. */
  packets: { tenant: number; packet_id: string; key: string }[] = [];
  /** The packets in the answers of units whose callers do not see all, by key. */
  readonly about = new Map<string, PacketAgents[]>();
  readonly #journal: Journal;
  readonly #group: Pick<Group<unknown>, 'sight'>;

  constructor(tenant: number, group: Pick<Group<unknown>, 'journal' | 'sight'>) {
    this.tenant = tenant;
    this.#journal = group.journal;
    this.#group = group;
  }

  /**
   * The answer to repeat for an idempotency key; undefined when the request has no key, or a new one.
   * @throws ServiceError 409 when the key belongs to a different request, or its answer may not be repeated; 410 when a packet in it was erased; 404 when the caller no
   * longer sees a packet in it
   */
  repeated(idempotency: Idempotency | undefined): (IdempotencyRecord & { body: string }) | undefined {
    if (idempotency === undefined) return undefined;
    const record = this.fresh.get(idempotency.key) ?? this.found.get(idempotency.key);
    if (record === undefined) return undefined;
    if (record.fingerprint !== idempotency.fingerprint)
      throw conflict(`This ${idempotency.name} was used for another request; use a new one.`);
    if (this.about.get(idempotency.key)?.some((packet) => !isSeen(this.#group.sight, packet))) throw notFound('packet');
    const { body } = record;
    if (record.status === erasedAnswer.status)
      throw new ServiceError('GONE', 'This request was already processed, and what it was about has been erased.');
    if (body === null) throw conflict('This request was already processed, and its answer is no longer available.');
    return { ...record, body: openedAnswer(body, idempotency.sent) };
  }

  /** Erases the new answers that contain a packet. The keys stay used. */
  erase(packetId: string): void {
    for (const { key } of this.packets.filter(({ packet_id }) => packet_id === packetId))
      this.fresh.set(key, { ...this.fresh.get(key)!, ...erasedAnswer });
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
  stage: (tenant, group) => new IdempotencyBuffer(tenant, group),

  async find(session, group) {
    const keys = group.wanted('key', ({ idempotencyKey }) => (idempotencyKey === undefined ? undefined : [idempotencyKey]));
    const rows = await session.find('idempotency', ['tenant', 'key', 'fingerprint', 'status', 'body', 'etag'], keys);
    for (const [tenant, key, fingerprint, status, body, etag] of rows as [number, string, string, number, string | null, string | null][])
      group.of(writes, tenant).found.set(key, { fingerprint, status, body, etag });
    await findPackets(session, group);
  },

  async erase(session, group, erased) {
    for (const { tenant, packet_id } of erased) group.of(writes, tenant).erase(packet_id);
    const kept = await session.find('idempotency_packets', ['tenant', 'key'], erased);
    session.update(
      'idempotency',
      ['tenant', 'key'],
      kept.map(([tenant, key]) => ({ tenant: tenant!, key: key!, ...erasedAnswer })),
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

/** Finds which packets are in the answers to callers who do not see all. */
async function findPackets(session: Session, group: Group<IdempotencyNeeds>): Promise<void> {
  const keys = group.units.flatMap(({ tenant, sight, unit: { idempotencyKey: key } }) =>
    sight === undefined || key === undefined ? [] : [{ tenant, key }],
  );
  if (keys.length === 0) return;
  const kept = (await session.read('idempotency_packets', ['tenant', 'key', 'packet_id'], keys)) as [number, string, string][];
  const ids = kept.map(([tenant, , id]) => ({ tenant, id }));
  const found = ids.length === 0 ? [] : await session.read('packets', ['tenant', 'id', 'source_agent', 'target_agent', 'claimed_by'], ids);
  const agents = new Map(
    (found as [number, string, string, string, string | null][]).map(([tenant, id, source_agent, target_agent, claimant]) => [
      `${tenant} ${id}`,
      { source_agent, target_agent, claimant },
    ]),
  );
  for (const [tenant, key, id] of kept) {
    const { about } = group.of(writes, tenant);
    about.set(key, [...(about.get(key) ?? []), ...(agents.has(`${tenant} ${id}`) ? [agents.get(`${tenant} ${id}`)!] : [])]);
  }
}

function reads({ database }: ReadDependencies) {
  return {
    ofAll: {
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
