import { type Kysely, sql } from 'kysely';
import type { Awaitable } from '../../kit/awaitable.ts';
import { noContent, type Writes } from './engine/group.ts';
import { TableBuffer } from './engine/table-buffer.ts';
import type { ReadDependencies, ReadScope } from './noun.ts';
import type { RowOf, Tables } from './tables.ts';

/**
 * The kinds of documents: contracts of agents by the agent's id, policies, groups and schedules by name, delegations by the person, standing
 * approvals by their id, and the versions of policies by `name@version`, which stay for the questions that were asked with them.
 */
export type DocumentKind = 'contract' | 'policy' | 'policy_version' | 'group' | 'delegation' | 'schedule' | 'standing';

declare module './tables.ts' {
  interface Tables {
    /** What is published under a name, as a whole and in versions. */
    documents: {
      tenant: number;
      kind: DocumentKind;
      name: string;
      version: number;
      /** JSON; empty once it is removed. */
      document: string;
      created_at: string;
      updated_at: string;
      removed_at: string | null;
    };
  }
}

/** The documents that a unit needs. */
export interface DocumentNeeds {
  /** The documents to lock, of one kind each; the tenant's documents of these kinds are counted. */
  readonly documentsOf?: { readonly kind: DocumentKind; readonly name: string } | undefined;
}

/** A stored document. A removed one is empty. */
export type StoredDocument = Omit<RowOf<'documents'>, 'tenant'>;

const columns = ['kind', 'name', 'version', 'document', 'created_at', 'updated_at', 'removed_at'] as const;

const keyOf = (kind: DocumentKind, name: string): string => `${kind} ${name}`;

/** A tenant's documents, removed ones included. */
export class DocumentBuffer extends TableBuffer<string, StoredDocument> {
  /** How many documents of each kind were published when the group began. */
  readonly #published = new Map<DocumentKind, number>();

  named(kind: DocumentKind, name: string): StoredDocument | undefined {
    return this.get(keyOf(kind, name));
  }

  /** Adds a document that the database has. */
  add(stored: StoredDocument): void {
    this.found.set(keyOf(stored.kind, stored.name), stored);
  }

  count(kind: DocumentKind): void {
    this.#published.set(kind, this.published(kind) + 1);
  }

  /** How many documents of a kind the tenant has, with those that earlier units of the group published. */
  published(kind: DocumentKind): number {
    return (this.#published.get(kind) ?? 0) + this.inserted.filter((stored) => stored.kind === kind).length;
  }

  /** Stores the next version of a document. */
  publish(stored: StoredDocument): void {
    const key = keyOf(stored.kind, stored.name);
    if (this.found.has(key)) this.save(key, stored);
    else {
      this.insert(stored);
      this.journal.set(this.found, key, stored);
    }
  }
}

/** Documents. A change makes every instance drop its cached keys and documents. */
const writes: Writes<DocumentNeeds, DocumentBuffer> = {
  needs: { documentsOf: true },
  stage: (_tenant, { journal }) => new DocumentBuffer(journal),
  erase: noContent,

  async find(session, group) {
    const wanted = new Map<string, { tenant: number; kind: DocumentKind; name: string }>();
    const kinds = new Map<string, { tenant: number; kind: DocumentKind; removed_at: null }>();
    for (const { tenant, unit } of group.units) {
      if (unit.documentsOf === undefined) continue;
      const { kind, name } = unit.documentsOf;
      wanted.set(`${tenant} ${keyOf(kind, name)}`, { tenant, kind, name });
      kinds.set(`${tenant} ${kind}`, { tenant, kind, removed_at: null });
    }
    const [rows, published] = await Promise.all([
      session.find('documents', ['tenant', ...columns], [...wanted.values()]),
      session.read('documents', ['tenant', 'kind'], [...kinds.values()]),
    ]);
    for (const [tenant, ...values] of rows)
      group
        .of(writes, tenant as number)
        .add(Object.fromEntries(columns.map((column, index) => [column, values[index]])) as unknown as StoredDocument);
    for (const [tenant, kind] of published) group.of(writes, tenant as number).count(kind as DocumentKind);
  },

  flush(session, group) {
    const rowsOf = (stored: readonly StoredDocument[], tenant: number) => stored.map((row) => ({ tenant, ...row }));
    session.insert(
      'documents',
      group.each(writes, ({ inserted }, tenant) => rowsOf(inserted, tenant)),
    );
    session.update(
      'documents',
      ['tenant', 'kind', 'name'],
      group.each(writes, ({ changed }, tenant) => rowsOf([...changed.values()], tenant)),
    );
    const isChanged = group.each(writes, ({ inserted, changed }) => [inserted.length + changed.size > 0]).includes(true);
    if (isChanged) session.add('versions', ['name'], 'value', [{ name: 'access', value: 1 }]);
  },
};

/** The published documents of a kind of a tenant. */
const publishedOf = (db: Kysely<Tables>, tenant: number, kind: DocumentKind) =>
  db
    .selectFrom('documents')
    .where('tenant', '=', tenant)
    .where('kind', '=', kind)
    // As in the partial index.
    .where('removed_at', 'is', null);

/** The versions of the contracts of a tenant, by the id of the agent: of these agents, or of all. */
export async function contractVersionsOf(db: Kysely<Tables>, tenant: number, agents?: readonly string[]): Promise<Map<string, number>> {
  if (agents?.length === 0) return new Map();
  const all = publishedOf(db, tenant, 'contract').select(['name', 'version']);
  const rows = await (agents === undefined ? all : all.where('name', 'in', agents)).execute();
  return new Map(rows.map(({ name, version }) => [name, version]));
}

function reads({ database }: ReadDependencies) {
  const one = database.query<{ tenant: number; kind: DocumentKind; name: string }, StoredDocument>((db, { tenant, kind, name }) =>
    db
      .selectFrom('documents')
      .select(columns)
      .where('tenant', '=', tenant)
      .where('kind', '=', kind)
      .where('name', '=', name)
      .where('removed_at', 'is', null),
  );
  const ofTenant = ({ viewer: { tenant_number: tenant, sight }, inLane }: ReadScope) => ({
    /** A document; undefined if none of the kind is published under the name, or it is the contract of an agent that the caller does not see. */
    find: (kind: DocumentKind, name: string): Awaitable<StoredDocument | undefined> =>
      kind === 'contract' && sight !== undefined && !sight.agents.includes(name) ? undefined : one.first({ tenant, kind, name }),
    /** The versions of all contracts, by the id of the agent. */
    contractVersions: () => contractVersionsOf(database.reads, tenant, sight?.agents),
    /** All documents of a kind, by name. Kinds that callers may have many of are read in pages. */
    all: (kind: 'policy' | 'group' | 'delegation' | 'standing'): Promise<StoredDocument[]> =>
      publishedOf(database.reads, tenant, kind).select(columns).orderBy('name').execute(),
    /** The documents of a kind after a name, by name. */
    page: (kind: DocumentKind, after: string, limit: number): Promise<StoredDocument[]> =>
      inLane((db) =>
        publishedOf(db, tenant, kind)
          .select(columns)
          .where('name', '>', after)
          .$if(kind === 'contract' && sight !== undefined, (contracts) => contracts.where('name', 'in', [...sight!.agents]))
          .orderBy('name')
          .limit(sql.lit(limit))
          .execute(),
      ),
  });
  return { ofTenant };
}

/** What is published under names: contracts, policies, groups, delegations, standing approvals. */
export const documents = { writes, reads };
