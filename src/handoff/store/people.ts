import { sql } from 'kysely';
import { readJson } from '../../kit/json.ts';
import { isSameIssuer } from '../rules/identity.ts';
import { noContent, type Writes } from './engine/group.ts';
import { TableBuffer } from './engine/table-buffer.ts';
import type { ReadDependencies, ReadScope } from './noun.ts';
import type { RowOf } from './tables.ts';

declare module './tables.ts' {
  interface Tables {
    /** People who signed in, whom a key names, or who are suspended. */
    people: {
      tenant: number;
      /** The name in the form in which names are compared. */
      name_key: string;
      name: string;
      /** The identity provider's id of the person, and the provider; null: nobody signed in under the name. */
      subject: string | null;
      issuer: string | null;
      /** The groups at the last sign-in, as a JSON array. */
      groups: string;
      last_seen_at: string | null;
      suspended_at: string | null;
      /** Since when no key names the person any more, after one did. */
      left_at: string | null;
      /** The answer links for the person that were made until then have ended; null: none has. */
      links_end_at: string | null;
    };
  }
}

/** The people that a unit needs. */
export interface PersonNeeds {
  /** The names of people to lock, in the form in which they are compared. */
  readonly people?: readonly string[];
}

/** A stored person. */
export type StoredPerson = Omit<RowOf<'people'>, 'tenant' | 'groups'> & { readonly groups: readonly string[] };

const columns = ['name_key', 'name', 'subject', 'issuer', 'groups', 'last_seen_at', 'suspended_at', 'left_at', 'links_end_at'] as const;

type Row = Omit<RowOf<'people'>, 'tenant'>;
type CountedRow = Pick<Row, 'name_key' | 'name' | 'groups' | 'suspended_at'>;

/** What policies know of a person. */
export type Counted = Pick<StoredPerson, 'name_key' | 'name' | 'groups' | 'suspended_at'>;

const decoded = ({ groups, ...row }: Row): StoredPerson => ({ ...row, groups: readJson<string[]>(groups) });

/** A tenant's people, by the form in which names are compared. Whom a unit names has a row, empty until it is saved. */
export class PersonBuffer extends TableBuffer<string, StoredPerson> {
  /** Whether a unit changed what a person may do, which instances keep. */
  isStandingChanged = false;

  /** Stores a person, new or changed. */
  put(person: StoredPerson): void {
    if (standingOf(this.get(person.name_key)!) !== standingOf(person)) this.isStandingChanged = true;
    this.save(person.name_key, person);
  }
}

/** The row of a person about whom nothing is known. */
const nobody = { name: '', groups: '[]' };

/** What instances keep of a person. */
const standingOf = ({ suspended_at, left_at, links_end_at, subject, issuer, groups }: StoredPerson): string =>
  JSON.stringify([suspended_at, left_at, links_end_at, subject, issuer, groups]);

/** People. A change of what a person may do makes every instance drop its cached keys. */
const writes: Writes<PersonNeeds, PersonBuffer> = {
  needs: { people: true },
  stage: (_tenant, { journal }) => new PersonBuffer(journal),
  erase: noContent,

  async find(session, group) {
    const wanted = group.wanted('name_key', (unit) => unit.people);
    // Rows of their own first, so that two instances that meet a person at once change the same row.
    session.insertMissing(
      'people',
      wanted.map((key) => ({ ...key, ...nobody })),
    );
    for (const [tenant, ...values] of await session.find('people', ['tenant', ...columns], wanted)) {
      const row = Object.fromEntries(columns.map((column, index) => [column, values[index]])) as unknown as Row;
      group.of(writes, tenant as number).found.set(row.name_key, decoded(row));
    }
  },

  flush(session, group) {
    const rowsOf = (stored: readonly StoredPerson[], tenant: number) =>
      stored.map((person) => ({ tenant, ...person, groups: JSON.stringify(person.groups) }));
    session.update(
      'people',
      ['tenant', 'name_key'],
      group.each(writes, ({ changed }, tenant) => rowsOf([...changed.values()], tenant)),
    );
    if (group.each(writes, ({ isStandingChanged }) => [isStandingChanged]).includes(true))
      session.add('versions', ['name'], 'value', [{ name: 'access', value: 1 }]);
  },
};

/** The most people in a list, and in one read. */
const maxListed = 10_000;

function reads({ database }: ReadDependencies) {
  const one = database.query<{ tenant: number; name_key: string }, Row>((db, { tenant, name_key }) =>
    db.selectFrom('people').select(columns).where('tenant', '=', tenant).where('name_key', '=', name_key).where('name', '<>', ''),
  );
  const suspended = database.query<{ tenant: number; subject: string }, Pick<Row, 'name' | 'issuer'>>((db, { tenant, subject }) =>
    db
      .selectFrom('people')
      .select(['name', 'issuer'])
      .where('tenant', '=', tenant)
      .where('subject', '=', subject)
      .where('suspended_at', 'is not', null),
  );
  const named = database.query<{ tenant: number; subject: string }, Pick<Row, 'name_key' | 'issuer' | 'last_seen_at'>>(
    (db, { tenant, subject }) =>
      db
        .selectFrom('people')
        .select(['name_key', 'issuer', 'last_seen_at'])
        .where('tenant', '=', tenant)
        .where('subject', '=', subject)
        .orderBy('name_key'),
  );
  const counted = database.query<{ tenant: number; last: string }, CountedRow>((db, { tenant, last }) =>
    db
      .selectFrom('people')
      .select(['name_key', 'name', 'groups', 'suspended_at'])
      .where('tenant', '=', tenant)
      .where('name_key', '>', last)
      .where((eb) => eb.or([eb('suspended_at', 'is not', null), eb('groups', '<>', '[]')]))
      .orderBy('name_key')
      .limit(sql.lit(maxListed)),
  );
  const ofTenant = ({ tenant, inLane }: ReadScope) => ({
    /** The name under which a person of an identity provider is suspended, whatever it is called now; undefined: it is not. */
    async suspendedName({ subject, issuer }: { readonly subject: string; readonly issuer: string }): Promise<string | undefined> {
      const rows = await suspended.all({ tenant, subject });
      return rows.find((row) => isSameIssuer(row.issuer!, issuer))?.name;
    },

    /** All names of a person of an identity provider, in the form in which names are compared, with when each was seen last. */
    async namesOf({ subject, issuer }: { readonly subject: string; readonly issuer: string }) {
      const rows = await named.all({ tenant, subject });
      return rows.filter((row) => isSameIssuer(row.issuer!, issuer)).map(({ name_key, last_seen_at }) => ({ name_key, last_seen_at }));
    },

    /** The names of the people who have several. */
    renamed: (): Promise<{ name_key: string; subject: string; issuer: string }[]> =>
      database.reads
        .selectFrom('people')
        .select(['name_key', 'subject', 'issuer'])
        .where('tenant', '=', tenant)
        .where('subject', 'in', (eb) =>
          eb
            .selectFrom('people')
            .select('subject')
            .where('tenant', '=', tenant)
            .where('subject', 'is not', null)
            .groupBy('subject')
            .having((having) => having.fn.countAll(), '>', 1),
        )
        .$castTo<{ name_key: string; subject: string; issuer: string }>()
        .execute(),

    /** The person of this name, in the form in which names are compared; undefined: nothing is stored. */
    async find(name_key: string): Promise<StoredPerson | undefined> {
      const row = await one.first({ tenant, name_key });
      return row && decoded(row);
    },

    /** All people whom policies count or leave out: who is in a group of the identity provider, or is suspended. */
    async counted(): Promise<Counted[]> {
      const found: Counted[] = [];
      let last = '';
      let page: CountedRow[];
      do {
        page = await counted.all({ tenant, last });
        for (const { groups, ...row } of page) found.push({ ...row, groups: readJson<string[]>(groups) });
        last = page.at(-1)?.name_key ?? '';
      } while (page.length === maxListed);
      return found;
    },

    /** The people of whom something is stored, by name, up to 10,000. */
    all: () =>
      inLane(async (db) => {
        const known = db.selectFrom('people').where('tenant', '=', tenant).where('name', '<>', '');
        const rows = await known.select(columns).orderBy('name_key').limit(sql.lit(maxListed)).execute();
        return rows.map(decoded);
      }),
  });
  return { ofTenant };
}

/** People who answer questions. */
export const people = { writes, reads };
