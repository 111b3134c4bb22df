import { readJson } from '../../kit/json.ts';
import type { Tier } from '../model/common.ts';
import { spellingsOf } from '../rules/identity.ts';
import { noContent, type Writes } from './engine/group.ts';
import { inSession } from './engine/in-session.ts';
import { TableBuffer } from './engine/table-buffer.ts';
import type { ReadDependencies, ReadScope } from './noun.ts';
import type { RowOf } from './tables.ts';

declare module './tables.ts' {
  interface Tables {
    /** Sessions of people who signed in. */
    sessions: {
      tenant: number;
      id: string;
      token_hash: string;
      name_key: string;
      /** The person, as the identity provider names it. */
      name: string;
      subject: string;
      issuer: string;
      /** The provider's id of its own session, by which it ends this one; null: it names none. */
      provider_session: string | null;
      /** The groups, as a JSON array. */
      groups: string;
      created_at: string;
      last_seen_at: string;
      expires_at: string;
      /** When the provider last said that the person is there, and with which groups. */
      checked_at: string;
      /** Until when an instance asks the provider again; null: none does. */
      checking_until: string | null;
      /** The provider's tokens, encrypted; null: none. */
      sealed: string | null;
      ended_at: string | null;
    };
    /** Secrets that the service made for itself. */
    secrets: { name: string; value: string };
  }
}

/** The sessions that a unit needs. */
export interface SessionNeeds {
  /** The ids of sessions to lock. */
  readonly sessions?: readonly string[];
  /** The people, by the form in which names are compared, all of whose sessions it needs. */
  readonly sessionsOf?: readonly string[];
}

/** A stored session. */
export type StoredSession = Omit<RowOf<'sessions'>, 'tenant' | 'groups'> & { readonly groups: readonly string[] };

/** A session with the limits of its tenant. */
export type SessionAccess = StoredSession & {
  readonly tenant_id: string;
  readonly tenant_number: number;
  readonly tenant_tier: Tier;
  readonly handoffs_per_day: number | null;
  readonly requests_per_hour: number | null;
};

const columns = [
  'id',
  'token_hash',
  'name_key',
  'name',
  'subject',
  'issuer',
  'provider_session',
  'groups',
  'created_at',
  'last_seen_at',
  'expires_at',
  'checked_at',
  'checking_until',
  'sealed',
  'ended_at',
] as const;

type Row = Omit<RowOf<'sessions'>, 'tenant'>;
const decoded = <R extends Pick<Row, 'groups'>>(row: R) => ({ ...row, groups: readJson<string[]>(row.groups) });

/** A tenant's sessions, by id. */
export class SessionBuffer extends TableBuffer<string, StoredSession> {
  /** The open sessions of a person. */
  ofPerson(name_key: string): StoredSession[] {
    return this.all().filter((session) => session.name_key === name_key && session.ended_at === null);
  }

  /** Ends a session, with the tokens that it keeps. */
  end(session: StoredSession, now: Date): void {
    this.save(session.id, { ...session, ended_at: now.toISOString(), sealed: null });
  }
}

const writes: Writes<SessionNeeds, SessionBuffer> = {
  needs: { sessions: true, sessionsOf: true },
  stage: (_tenant, { journal }) => new SessionBuffer(journal),
  erase: noContent,

  async find(session, group) {
    const named = group.wanted('id', (unit) => unit.sessions);
    const people = group.wanted('name_key', (unit) => unit.sessionsOf).map((wanted) => ({ ...wanted, ended_at: null }));
    const [all, locked] = await Promise.all([
      session.read('sessions', ['tenant', ...columns], people),
      session.find('sessions', ['tenant', ...columns], named),
    ]);
    // Locked rows last, because they are the current versions.
    for (const [tenant, ...values] of [...all, ...locked]) {
      const row = Object.fromEntries(columns.map((column, index) => [column, values[index]])) as unknown as Row;
      group.of(writes, tenant as number).found.set(row.id, decoded(row));
    }
  },

  flush(session, group) {
    const rowsOf = (stored: readonly StoredSession[], tenant: number) =>
      stored.map((one) => ({ tenant, ...one, groups: JSON.stringify(one.groups) }));
    session.insert(
      'sessions',
      group.each(writes, ({ inserted }, tenant) => rowsOf(inserted, tenant)),
    );
    session.update(
      'sessions',
      ['tenant', 'id'],
      group.each(writes, ({ changed }, tenant) => rowsOf([...changed.values()], tenant)),
    );
  },
};

/** The most sessions in a list. */
const maxListed = 1000;

function reads({ database }: ReadDependencies) {
  const { reads: db } = database;
  const withHash = database.query<{ tenant_id: string; token_hash: string }, Omit<SessionAccess, 'groups'> & Pick<Row, 'groups'>>(
    (db, { tenant_id, token_hash }) =>
      db
        .selectFrom('tenants')
        .innerJoin('sessions', 'sessions.tenant', 'tenants.number')
        .select(columns.map((column) => `sessions.${column}` as const))
        .select([
          'tenants.id as tenant_id',
          'tenants.number as tenant_number',
          'tenants.tier as tenant_tier',
          'tenants.handoffs_per_day as handoffs_per_day',
          'tenants.requests_per_hour as requests_per_hour',
        ])
        .where('tenants.id', '=', tenant_id)
        .where('deleted_at', 'is', null)
        .where('token_hash', '=', token_hash)
        .where('ended_at', 'is', null),
  );

  const ofAll = {
    /** The open session of a tenant with this hash of its token. */
    async byHash(tenant_id: string, token_hash: string): Promise<SessionAccess | undefined> {
      const row = await withHash.first({ tenant_id, token_hash });
      return row && decoded(row);
    },

    /** The open sessions that a logout of the provider names: by the provider's id of a session, or all of a person's, with `begunBefore` those that had begun by then. */
    ofProvider: (
      issuer: string,
      by: { provider_session: string } | { subject: string; begunBefore: Date | undefined },
    ): Promise<{ tenant: number; id: string }[]> =>
      db
        .selectFrom('sessions')
        .select(['tenant', 'id'])
        .where('issuer', 'in', spellingsOf(issuer))
        .where((eb) => {
          if ('provider_session' in by) return eb('provider_session', '=', by.provider_session);
          const ofPerson = eb('subject', '=', by.subject);
          return by.begunBefore === undefined ? ofPerson : eb.and([ofPerson, eb('created_at', '<=', by.begunBefore.toISOString())]);
        })
        .where('ended_at', 'is', null)
        .limit(maxListed)
        .execute(),

    /** Removes sessions that expired before the time, up to `limit`. */
    async forget(before: Date, limit: number): Promise<number> {
      const old = await db
        .selectFrom('sessions')
        .select(['tenant', 'id'])
        .where('expires_at', '<', before.toISOString())
        .orderBy('expires_at')
        .limit(limit)
        .execute();
      if (old.length > 0) await inSession(database, async (session) => session.remove('sessions', old));
      return old.length;
    },

    /** The secret of this name; the first call in a database stores the one given. */
    async secret(name: string, fresh: string): Promise<string> {
      const stored = () => db.selectFrom('secrets').select('value').where('name', '=', name).executeTakeFirst();
      const found = await stored();
      if (found !== undefined) return found.value;
      await database.transaction((tx) =>
        tx
          .insertInto('secrets')
          .values({ name, value: fresh })
          .onConflict((conflict) => conflict.column('name').doNothing())
          .execute(),
      );
      return (await stored())!.value;
    },
  };

  const ofTenant = ({ tenant }: ReadScope) => ({
    /** The open sessions, of one person or of all, newest first. */
    async list(now: Date, name_key?: string): Promise<StoredSession[]> {
      const open = db
        .selectFrom('sessions')
        .select(columns)
        .where('tenant', '=', tenant)
        .where('ended_at', 'is', null)
        .where('expires_at', '>', now.toISOString());
      const rows = await (name_key === undefined ? open : open.where('name_key', '=', name_key))
        .orderBy('id', 'desc')
        .limit(maxListed)
        .execute();
      return rows.map(decoded);
    },
  });
  return { ofTenant, ofAll };
}

/** Sessions of people who signed in. */
export const sessions = { writes, reads };
