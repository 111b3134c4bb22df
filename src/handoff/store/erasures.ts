import { sql } from 'kysely';

import { readJson } from '../../kit/json.ts';
import { countOf } from '../../kit/sql/count.ts';
import type { Row } from '../../kit/sql/dialect.ts';
import { addErased, type ErasureProgress } from '../rules/receipt.ts';
import { type Group, noContent, type Writes } from './engine/group.ts';
import { Table, TableBuffer } from './engine/table-buffer.ts';
import { keyOf } from './erasure.ts';
import type { ReadDependencies, ReadScope } from './noun.ts';
import type { RowOf } from './tables.ts';
import { behind, Walk } from './walk.ts';

declare module './tables.ts' {
  interface Tables {
    /** Requests to erase packets, and their receipts. */
    erasures: {
      tenant: number;
      id: string;
      status: 'queued' | 'running' | 'done';
      reason: string;
      actor: string;
      key_id: string | null;
      /** The digest of the id of the person whose packets it erases; null: it names packets. */
      subject_digest: string | null;
      /** The packets that are still to be erased, if it names them, as a JSON array. */
      remaining: string;
      /** How many packets it erases. */
      packets: number;
      /** The ids that no packet has, as a JSON array. */
      not_found: string;
      /** What was erased so far (`ErasureProgress`), as JSON. */
      progress: string;
      created_at: string;
      done_at: string | null;
    };
  }
}

/** The erasures that a unit needs. */
export interface ErasureNeeds {
  /** The ids of erasures to lock. */
  readonly erasures?: readonly string[];
}

/** A stored erasure. */
export type StoredErasure = Omit<RowOf<'erasures'>, 'tenant' | 'remaining' | 'not_found' | 'progress'> & {
  readonly remaining: readonly string[];
  readonly not_found: readonly string[];
  readonly progress: ErasureProgress;
};

const plain = ['id', 'status', 'reason', 'actor', 'key_id', 'subject_digest', 'packets', 'created_at', 'done_at'] as const;
const columns = [...plain, 'remaining', 'not_found', 'progress'] as const;

const decoded = ({ remaining, not_found, progress, ...row }: Omit<RowOf<'erasures'>, 'tenant'>): StoredErasure => ({
  ...row,
  remaining: readJson(remaining),
  not_found: readJson(not_found),
  progress: readJson(progress),
});

const table = new Table<StoredErasure>({
  name: 'erasures',
  columns,
  key: 'id',
  ofTenants: true,
  updated: ['status', 'packets', 'remaining', 'progress', 'done_at'],
  decode: (row) => decoded(row as unknown as RowOf<'erasures'>),
  encode: ({ remaining, not_found, progress, ...erasure }) => ({
    ...erasure,
    remaining: JSON.stringify(remaining),
    not_found: JSON.stringify(not_found),
    progress: JSON.stringify(progress),
  }),
});

/** A tenant's erasures, by id. */
export class ErasureBuffer extends TableBuffer<string, StoredErasure> {
  /** Which packets the units erase, by the id of the erasure. */
  readonly erased: { readonly id: string; readonly packetIds: readonly string[] }[] = [];

  /** Saves an erasure that has erased packets, of which it keeps what was erased. */
  advance(erasure: StoredErasure, packetIds: readonly string[]): void {
    this.save(erasure.id, erasure);
    this.journal.push(this.erased, { id: erasure.id, packetIds });
  }
}

const writes: Writes<ErasureNeeds, ErasureBuffer> = {
  needs: { erasures: true },
  stage: (_tenant, { journal }) => new ErasureBuffer(journal),
  erase: noContent,

  async find(session, group) {
    const wanted = group.wanted('id', (unit) => unit.erasures);
    for (const { stored, more } of await table.find(session, wanted, ['tenant']))
      group.of(writes, more[0] as number).found.set(stored.id, stored);
  },

  flush(session, group) {
    group.each(writes, (own, tenant) => {
      for (const step of own.erased) own.changed.set(step.id, withErased(own.changed.get(step.id)!, step.packetIds, group, tenant));
      return [];
    });
    table.flush(session, group, writes);
  },
};

/** The erasure with what the group erased of these packets. */
function withErased(erasure: StoredErasure, packetIds: readonly string[], group: Group<unknown>, tenant: number): StoredErasure {
  const contents = packetIds.flatMap((packet_id) => group.erasedContent.get(keyOf({ tenant, packet_id })) ?? []);
  return { ...erasure, progress: addErased(erasure.progress, contents) };
}

/** The most bytes of packets that one step reads; it erases at least one packet. */
const maxStepBytes = 4 * 1024 * 1024;

/** An erasure that is not done. */
export type OpenErasure = Pick<RowOf<'erasures'>, 'tenant' | 'id' | 'created_at'>;

/** Of how many erasures an instance knows how far it is; of others it begins with the first packet again. */
const maxErasuresAtOnce = 1_000;

/** A packet that ended, and when. */
export type EndedPacket = Pick<RowOf<'packets'>, 'id'> & { readonly ended_at: string };

function reads({ database }: ReadDependencies) {
  const { reads: db } = database;
  const walk = new Walk<OpenErasure>();
  /** By tenant, while there is more. */
  const walksOfEnded = new Map<number, Walk<EndedPacket>>();
  /** The packet behind which an erasure continues, by its id. */
  const lastOfErasure = new Map<string, string>();

  /** The first of these packets that together are not too large, in this order. */
  async function fitting(tenant: number, ids: readonly string[]): Promise<string[]> {
    if (ids.length === 0) return [];
    const rows = await db
      .selectFrom('packets')
      .innerJoin('contents', (join) => join.onRef('contents.tenant', '=', 'packets.tenant').onRef('contents.packet', '=', 'packets.seq'))
      // Neither database reads a content for its length.
      .select(['packets.id', sql<number>`octet_length(content)`.as('bytes')])
      .where('packets.tenant', '=', tenant)
      .where('packets.id', 'in', [...ids])
      .execute();
    const bytes = new Map(rows.map((row) => [row.id, Number(row.bytes)]));
    let sum = 0;
    return ids.filter((id, index) => {
      sum += bytes.get(id) ?? 0;
      return index === 0 || sum <= maxStepBytes;
    });
  }

  const ofTenant = (scope: ReadScope) => ({
    find: async (id: string): Promise<StoredErasure | undefined> => {
      const found = db.selectFrom('erasures').select(columns).where('tenant', '=', scope.tenant).where('id', '=', id);
      const row = await found.executeTakeFirst();
      return row && decoded(row);
    },
    /** Erasures, newest first, from the one before an id, and how many there are. */
    async page({ limit, before, offset }: { limit: number; before?: string | undefined; offset: number }) {
      const own = db.selectFrom('erasures').where('tenant', '=', scope.tenant);
      const from = before === undefined ? own : own.where('id', '<', before);
      const rows = await from.select(columns).orderBy('id', 'desc').limit(limit).offset(offset).execute();
      return { erasures: rows.map(decoded), total: await countOf(own) };
    },
    /** The ids of these packets that the tenant has, in the order given. */
    async known(ids: readonly string[]): Promise<string[]> {
      if (ids.length === 0) return [];
      const found = db
        .selectFrom('packets')
        .select('id')
        .where('tenant', '=', scope.tenant)
        .where('id', 'in', [...ids]);
      const known = new Set((await found.execute()).map(({ id }) => id));
      return ids.filter((id) => known.has(id));
    },
    /** How many packets hold data of a person. */
    count: (subject_digest: string): Promise<number> =>
      countOf(db.selectFrom('packet_subjects').where('tenant', '=', scope.tenant).where('subject_digest', '=', subject_digest)),
    /**
     * The packets that an erasure erases next, up to `limit`: those behind the call before, so that packets that fail keep no other, and
     * then the first. None: nothing is left.
     */
    async next({ id, subject_digest, remaining }: StoredErasure, limit: number): Promise<string[]> {
      const { tenant } = scope;
      const leftBehind = async (last: string): Promise<string[]> => {
        if (subject_digest === null)
          return [...remaining]
            .sort()
            .filter((packetId) => packetId > last)
            .slice(0, limit);
        const found = db.selectFrom('packet_subjects').select('packet_id').where('tenant', '=', tenant).where('packet_id', '>', last);
        const rows = await found.where('subject_digest', '=', subject_digest).orderBy('packet_id').limit(limit).execute();
        return rows.map(({ packet_id }) => packet_id);
      };
      const last = lastOfErasure.get(id);
      lastOfErasure.delete(id);
      const behindLast = last === undefined ? [] : await leftBehind(last);
      const ids = await fitting(tenant, behindLast.length > 0 ? behindLast : await leftBehind(''));
      // Those that another instance ended are never asked about again.
      if (lastOfErasure.size >= maxErasuresAtOnce) lastOfErasure.clear();
      if (ids.length > 0) lastOfErasure.set(id, ids.at(-1)!);
      return ids;
    },
    /**
     * Up to `limit` packets that ended, or last changed, before a time and are not erased, the earliest first, beginning after the packets
     * of the call before, and whether there may be more.
     */
    async ended(before: Date, limit: number): Promise<{ ids: string[]; more: boolean }> {
      const { tenant } = scope;
      const walk = walksOfEnded.get(tenant) ?? new Walk();
      walksOfEnded.set(tenant, walk);
      const rows = await db
        .selectFrom('packets')
        .select(['id', 'ended_at'])
        .where('tenant', '=', tenant)
        .where('ended_at', '<', before.toISOString())
        .where(behind(walk.last && { ended_at: walk.last.ended_at, id: walk.last.id }))
        .orderBy('ended_at')
        .orderBy('id')
        .limit(limit)
        .$castTo<EndedPacket>()
        .execute();
      const ids = await fitting(
        tenant,
        rows.map(({ id }) => id),
      );
      const fit = rows.filter(({ id }) => ids.includes(id));
      const more = walk.found(fit, rows.length === limit || fit.length < rows.length);
      if (!more) walksOfEnded.delete(tenant);
      return { ids, more };
    },
  });
  const ofAll = {
    /** Works on up to `limit` erasures that are not done, the oldest first, beginning after the erasures of the round before; returns whether there are any. */
    async open(limit: number, work: (found: readonly OpenErasure[]) => Promise<unknown>): Promise<boolean> {
      const { last } = walk;
      const rows = await db
        .selectFrom('erasures')
        .select(['tenant', 'id', 'created_at'])
        .where('done_at', 'is', null)
        .where(behind(last && { created_at: last.created_at, tenant: last.tenant, id: last.id }))
        .orderBy('created_at')
        .orderBy('tenant')
        .orderBy('id')
        .limit(limit)
        .execute();
      const more = walk.found(rows, rows.length === limit);
      await work(rows);
      return more || rows.length > 0;
    },

    /** A number that rises with each commit that erased content, which instances may hold in memory. */
    async version(): Promise<number> {
      const row = await db.selectFrom('versions').select('value').where('name', '=', erasedVersion).executeTakeFirst();
      return Number(row?.value ?? 0);
    },
  };
  return { ofTenant, ofAll };
}

/** The version that rises with each commit that erases content. */
export const erasedVersion = 'erased';

/** The rows that say that content was erased. */
export const erasedVersions: readonly Row[] = [{ name: erasedVersion, value: 1 }];

/** Erasures of packets, and their receipts. */
export const erasures = { writes, reads };
