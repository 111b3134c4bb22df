import { type Generated, sql } from 'kysely';

import type { Awaitable } from '../../kit/awaitable.ts';
import type { Writes } from './engine/group.ts';
import { inSession } from './engine/in-session.ts';
import { Table, TableBuffer } from './engine/table-buffer.ts';
import type { ReadDependencies, ReadScope } from './noun.ts';
import type { RowOf } from './tables.ts';

declare module './tables.ts' {
  interface Tables {
    answer_links: {
      seq: Generated<number>;
      id: string;
      tenant: number;
      packet_id: string;
      /** The question that it was made for, the id under which that was first asked, and who was asked (`hitl.responder`). */
      question: string;
      first_question: string;
      asked_of: string | null;
      token_hash: string;
      responder: string | null;
      /** The key that made it, and the first key of that key's chain of rotations. */
      key_id: string | null;
      key_origin: string;
      created_at: string;
      expires_at: string;
      answered_at: string | null;
      revoked_at: string | null;
      /** Whether it is known that who has it is its responder, 1 or 0. */
      verified: number;
      /** Whether its responder has to sign in, 1 or 0. */
      sign_in: number;
      /** The id of the channel that it was made for; null: a caller made it. */
      channel: string | null;
    };
  }
}

/** The answer links that a unit needs. */
export interface AnswerLinkNeeds {
  /** The ids of links to lock. */
  readonly answerLinks?: readonly string[];
  /** A locked packet of which it needs all links. */
  readonly answerLinksOf?: string;
}

/** A stored answer link. Its `seq` is 0 before it is inserted. */
export type StoredAnswerLink = Omit<RowOf<'answer_links'>, 'tenant'>;

const columns = [
  'seq',
  'id',
  'packet_id',
  'question',
  'first_question',
  'asked_of',
  'token_hash',
  'responder',
  'key_id',
  'key_origin',
  'created_at',
  'expires_at',
  'answered_at',
  'revoked_at',
  'verified',
  'sign_in',
  'channel',
] as const;

const table = new Table<StoredAnswerLink>({
  name: 'answer_links',
  columns,
  key: 'seq',
  ofTenants: true,
  updated: ['answered_at', 'revoked_at'],
  decode: (row) => row as unknown as StoredAnswerLink,
  encode: (link) => ({ ...link }),
});

/** A tenant's answer links, by id. */
export class AnswerLinkBuffer extends TableBuffer<string, StoredAnswerLink> {
  /** The links of a packet, including new ones. */
  ofPacket(packetId: string): StoredAnswerLink[] {
    return [...this.all(), ...this.inserted].filter(({ packet_id }) => packet_id === packetId);
  }
}

const writes: Writes<AnswerLinkNeeds, AnswerLinkBuffer> = {
  needs: { answerLinks: true, answerLinksOf: true },
  stage: (_tenant, { journal }) => new AnswerLinkBuffer(journal),

  async find(session, group) {
    const named = group.wanted('id', (unit) => unit.answerLinks);
    const packets = group.wanted('packet_id', ({ answerLinksOf: id }) => (id === undefined ? undefined : [id]));
    const [all, locked] = await Promise.all([table.read(session, packets, ['tenant']), table.find(session, named, ['tenant'])]);
    // Locked rows last, because they are the current versions.
    for (const { stored, more } of [...all, ...locked]) group.of(writes, more[0] as number).found.set(stored.id, stored);
  },

  async erase(session, group, erased) {
    for (const { tenant, packet_id } of erased) group.of(writes, tenant).drop((link) => link.packet_id === packet_id);
    session.remove('answer_links', erased);
  },

  flush: (session, group) => table.flush(session, group, writes),
};

/** The most links of a packet in a list. */
const maxListed = 1000;

function reads({ database }: ReadDependencies) {
  const { reads: db } = database;
  const tenantWithId = database.query<{ id: string }, { number: number }>((db, { id }) =>
    db.selectFrom('tenants').select('number').where('id', '=', id).where('deleted_at', 'is', null),
  );
  const withHash = database.query<{ tenant: number; token_hash: string }, StoredAnswerLink & { tenant: number }>(
    (db, { tenant, token_hash }) =>
      db
        .selectFrom('answer_links')
        .select([...columns, 'tenant'])
        .where('tenant', '=', tenant)
        .where('token_hash', '=', token_hash)
        // The removal of a channel ends the links that were made for it.
        .where(
          sql<boolean>`(channel is null or exists (select 1 from webhooks where webhooks.tenant = answer_links.tenant
          and webhooks.id = channel and webhooks.removed_at is null))`,
        ),
  );
  const ofAll = {
    /** The link of a tenant with this hash of its token, unless its tenant is deleted or its channel removed. An unknown tenant costs the same reads. */
    async byHash(tenantId: string, token_hash: string): Promise<(StoredAnswerLink & { tenant: number }) | undefined> {
      const tenant = await tenantWithId.first({ id: tenantId });
      return withHash.first({ tenant: tenant?.number ?? 0, token_hash });
    },

    /** Removes links that expired before the time, up to `limit`. */
    async forget(before: Date, limit: number): Promise<number> {
      const old = await db
        .selectFrom('answer_links')
        .select(['tenant', 'seq'])
        .where('expires_at', '<', before.toISOString())
        .orderBy('expires_at')
        .limit(limit)
        .execute();
      if (old.length > 0) await inSession(database, async (session) => session.remove('answer_links', old));
      return old.length;
    },
  };
  const ofTenant = (scope: ReadScope) => ({
    /** The packet of a link, to be locked: whether the caller sees it is decided then. */
    find: (id: string): Promise<{ packet_id: string } | undefined> =>
      db
        .selectFrom('answer_links')
        .select('packet_id')
        .where('tenant', '=', scope.viewer.tenant_number)
        .where('id', '=', id)
        .executeTakeFirst(),

    /** The links of a packet, newest first. */
    ofPacket: (packetId: string): Awaitable<StoredAnswerLink[]> =>
      scope.ofPacket(
        packetId,
        (tenant) =>
          db
            .selectFrom('answer_links')
            .select(columns)
            .where('tenant', '=', tenant)
            .where('packet_id', '=', packetId)
            .orderBy('seq', 'desc')
            .limit(maxListed)
            .execute(),
        [],
      ),
  });
  return { ofTenant, ofAll };
}

/** Answer links. */
export const answerLinks = { writes, reads };
