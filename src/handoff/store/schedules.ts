import type { Kysely } from 'kysely';
import { countOf } from '../../kit/sql/count.ts';
import type { Sight } from '../rules/sight.ts';
import { noContent, type Writes } from './engine/group.ts';
import type { Journal } from './engine/journal.ts';
import type { ReadDependencies, ReadScope } from './noun.ts';
import type { Page } from './page-size.ts';
import type { RowOf, Tables } from './tables.ts';
import { behind } from './walk.ts';

declare module './tables.ts' {
  interface Tables {
    /** When schedules run and how it went. What they say is a document, by the same name. */
    schedules: {
      tenant: number;
      name: string;
      /** The version of the document. */
      version: number;
      /** The first key of the chain of rotations in whose name it runs. */
      key_origin: string;
      /** The agents of its packets. */
      source_agent: string;
      target_agent: string;
      /** When it runs next; null: it is switched off. */
      due_at: string | null;
      last_at: string | null;
      last_packet_id: string | null;
      /** JSON. */
      last_error: string | null;
      disabled_reason: string | null;
    };
  }
}

/** The schedules that a unit needs. */
export interface ScheduleNeeds {
  /** Their names. */
  readonly schedulesOf?: readonly string[] | undefined;
}

/** When a schedule runs, and how it went. */
export type StoredSchedule = Omit<RowOf<'schedules'>, 'tenant'>;

/** A schedule whose time has come. */
export interface DueSchedule {
  readonly tenant: number;
  readonly name: string;
  readonly due_at: string;
}

/** A schedule with its document. */
export interface FoundSchedule extends StoredSchedule {
  readonly document: string;
  readonly created_at: string;
  readonly updated_at: string;
}

const columns = [
  ...(['name', 'version', 'key_origin', 'source_agent', 'target_agent', 'due_at'] as const),
  ...(['last_at', 'last_packet_id', 'last_error', 'disabled_reason'] as const),
] as const;

/** A tenant's schedules that units named. */
export class ScheduleBuffer {
  readonly #journal: Journal;
  /** The rows that the database has. */
  readonly found = new Map<string, StoredSchedule>();
  /** What units wrote; undefined: removed. */
  readonly written = new Map<string, StoredSchedule | undefined>();

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  get(name: string): StoredSchedule | undefined {
    return this.written.has(name) ? this.written.get(name) : this.found.get(name);
  }

  save(stored: StoredSchedule): void {
    this.#journal.set(this.written, stored.name, stored);
  }

  remove(name: string): void {
    this.#journal.set(this.written, name, undefined);
  }
}

const writes: Writes<ScheduleNeeds, ScheduleBuffer> = {
  needs: { schedulesOf: true },
  stage: (_tenant, { journal }) => new ScheduleBuffer(journal),
  erase: noContent,

  async find(session, group) {
    const wanted = group.wanted('name', ({ schedulesOf }) => schedulesOf);
    for (const [tenant, ...values] of await session.find('schedules', ['tenant', ...columns], wanted)) {
      const stored = Object.fromEntries(columns.map((column, index) => [column, values[index]])) as unknown as StoredSchedule;
      group.of(writes, tenant as number).found.set(stored.name, stored);
    }
  },

  flush(session, group) {
    const rows = <T>(of: (row: { tenant: number; name: string; stored: StoredSchedule | undefined; isNew: boolean }) => T[]) =>
      group.each(writes, ({ written, found }, tenant) =>
        [...written].flatMap(([name, stored]) => of({ tenant, name, stored, isNew: !found.has(name) })),
      );
    session.insert(
      'schedules',
      rows(({ tenant, stored, isNew }) => (stored !== undefined && isNew ? [{ tenant, ...stored }] : [])),
    );
    session.update(
      'schedules',
      ['tenant', 'name'],
      rows(({ tenant, stored, isNew }) => (stored !== undefined && !isNew ? [{ tenant, ...stored }] : [])),
    );
    session.remove(
      'schedules',
      rows(({ tenant, name, stored, isNew }) => (stored === undefined && !isNew ? [{ tenant, name }] : [])),
    );
  },
};

/** The schedules of a tenant, or those of the agents that a caller sees, with their documents. */
function schedulesOf(db: Kysely<Tables>, tenant: number, sight: Sight | undefined) {
  const all = db
    .selectFrom('schedules')
    .innerJoin('documents', (join) =>
      join
        .onRef('documents.tenant', '=', 'schedules.tenant')
        .onRef('documents.name', '=', 'schedules.name')
        .on('documents.kind', '=', 'schedule')
        .on('documents.removed_at', 'is', null),
    )
    .where('schedules.tenant', '=', tenant)
    .where('documents.tenant', '=', tenant);
  if (sight === undefined) return all;
  const { agents, queues } = sight;
  const targets = [...new Set([...agents, ...queues])];
  return all.where((eb) =>
    eb.or([
      ...(agents.length === 0 ? [] : [eb('source_agent', 'in', [...agents])]),
      ...(targets.length === 0 ? [] : [eb('target_agent', 'in', targets)]),
      eb.val(false),
    ]),
  );
}

const shownColumns = [
  ...columns.map((column) => `schedules.${column}` as const),
  'documents.document',
  'documents.created_at',
  'documents.updated_at',
] as const;

function reads({ database, walks: { schedules: walk } }: ReadDependencies) {
  const ofTenant = ({ viewer: { tenant_number: tenant, sight }, inLane }: ReadScope) => ({
    /** A schedule; undefined if there is none of the name, or the caller does not see the packets that it makes. */
    find: (name: string): Promise<FoundSchedule | undefined> =>
      schedulesOf(database.reads, tenant, sight).select(shownColumns).where('schedules.name', '=', name).executeTakeFirst(),
    /** The names of the schedules that run for a caller, which is named by its origin, up to 100. */
    ofOrigin: async (key_origin: string): Promise<string[]> =>
      (
        await schedulesOf(database.reads, tenant, sight)
          .select('schedules.name')
          .where('key_origin', '=', key_origin)
          .orderBy('schedules.name')
          .limit(100)
          .execute()
      ).map(({ name }) => name),
    /** A page of the schedules, by name, and how many there are. */
    page: async ({ limit, offset }: Page): Promise<{ rows: FoundSchedule[]; total: number }> => {
      const rows = await inLane((db) =>
        schedulesOf(db, tenant, sight).select(shownColumns).orderBy('schedules.name').limit(limit).offset(offset).execute(),
      );
      return { rows, total: await inLane((db) => countOf(schedulesOf(db, tenant, sight))) };
    },
  });
  const ofAll = {
    /** Works on up to `limit` schedules of all tenants whose time has come, earliest first; returns whether there may be more. */
    async due(now: Date, limit: number, work: (found: readonly DueSchedule[]) => Promise<unknown>): Promise<boolean> {
      const { last } = walk;
      const from = walk.from(now);
      const rows = await database.reads
        .selectFrom('schedules')
        .select(['tenant', 'name', 'due_at'])
        .where('due_at', 'is not', null)
        .where('due_at', '<=', now.toISOString())
        .where('due_at', '>=', from)
        .where(behind(last && { due_at: last.due_at, tenant: last.tenant, name: last.name }))
        .orderBy('due_at')
        .orderBy('tenant')
        .orderBy('name')
        .limit(limit)
        .$castTo<DueSchedule>()
        .execute();
      const more = walk.found(rows, rows.length === limit);
      await work(rows);
      return more;
    },
  };
  return { ofTenant, ofAll };
}

/** When schedules run. */
export const schedules = { writes, reads };
