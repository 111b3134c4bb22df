import { notFound } from '../../kit/errors.ts';
import { nameKey } from '../model/people.ts';
import type { Person } from '../model/person.ts';
import type { Page } from '../store/page-size.ts';
import type { StoredPerson } from '../store/people.ts';
import type { Transaction } from '../store/transaction.ts';
import { type Caller, provenanceOf } from './authentication.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { auditRecord } from './trail.ts';

/** The longest name of a person, in characters. */
const maxNameLength = 1024;

/** The operations on people. */
export function createPeopleService({ store, clock }: ServiceDependencies) {
  /** Everybody of the tenant as callers see them, by name: with the ways on which each may answer. */
  async function everybody(caller: Caller): Promise<Person[]> {
    const own = store.of(caller);
    const [stored, keys, channels] = await Promise.all([
      own.people.all(),
      store.keys.of(caller.tenant_id, clock()),
      own.webhooks.channels(),
    ]);
    const found = new Map(stored.map((person) => [person.name_key, shown(person)]));
    const note = (items: readonly { readonly responder: string | null }[], method: Person['methods'][number]) => {
      for (const { responder } of items) {
        if (responder === null) continue;
        const key = nameKey(responder);
        const person = found.get(key) ?? shown(unknown(key, responder));
        if (!person.methods.includes(method)) person.methods.push(method);
        found.set(key, person);
      }
    };
    note(keys, 'key');
    note(channels, 'link');
    return [...found].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, person]) => person);
  }

  /** Changes the stored person; an entry in the trail says what has changed. `change` returns undefined if nothing is to be changed. */
  async function change(
    caller: Caller,
    given: string,
    {
      action,
      isNew,
      work,
    }: { action: string; isNew: boolean; work: (person: StoredPerson, transaction: Transaction, now: Date) => StoredPerson | undefined },
  ): Promise<Person> {
    const key = nameKey(given);
    const at = provenanceOf(caller, clock());
    if (key === '' || given.length > maxNameLength || given.includes('\0') || !given.isWellFormed()) throw notFound('person');
    const person = await store.of(caller).commit({
      people: [key],
      sessionsOf: [key],
      work(transaction) {
        const stored = transaction.people.get(key)!;
        if (stored.name === '' && !isNew) throw notFound('person');
        const before = stored.name === '' ? { ...stored, name: given.trim().normalize('NFC') } : stored;
        const after = work(before, transaction, at.now);
        if (after === undefined) return before;
        transaction.people.put(after);
        transaction.trail.audit(auditRecord(caller, 'person', action, { name: after.name }), at);
        return after;
      },
    });
    const all = await everybody(caller);
    return all.find(({ name }) => nameKey(name) === person.name_key)!;
  }

  return {
    /** A page of the tenant's people, by name. */
    async page(caller: Caller, { limit, offset }: Page) {
      const all = await everybody(caller);
      return { people: all.slice(offset, offset + limit), total: all.length, limit, offset };
    },

    /** Ends all ways on which the person answers. */
    suspend: (caller: Caller, name: string) =>
      change(caller, name, {
        action: 'suspended',
        isNew: true,
        work(person, { sessions }, now) {
          if (person.suspended_at !== null) return undefined;
          for (const session of sessions.ofPerson(person.name_key)) sessions.end(session, now);
          return { ...person, suspended_at: now.toISOString(), links_end_at: now.toISOString() };
        },
      }),

    /** Lets a suspended person answer again. */
    resume: (caller: Caller, name: string) =>
      change(caller, name, {
        action: 'resumed',
        isNew: false,
        work: (person) =>
          person.suspended_at === null && person.left_at === null ? undefined : { ...person, suspended_at: null, left_at: null },
      }),

    /** Lets somebody else sign in under the name. */
    release: (caller: Caller, name: string) =>
      change(caller, name, {
        action: 'released',
        isNew: false,
        work(person, { sessions }, now) {
          if (person.subject === null) return undefined;
          for (const session of sessions.ofPerson(person.name_key)) sessions.end(session, now);
          // Links that were made by or for the former one are not the next one's.
          return { ...person, subject: null, issuer: null, groups: [], links_end_at: now.toISOString() };
        },
      }),
  };
}

export type PeopleService = ReturnType<typeof createPeopleService>;

const unknown = (name_key: string, name: string): StoredPerson => ({
  ...{ name_key, name: name.trim().normalize('NFC'), subject: null, issuer: null, groups: [] },
  ...{ last_seen_at: null, suspended_at: null, left_at: null, links_end_at: null },
});

const shown = ({ name, subject, groups, last_seen_at, suspended_at }: StoredPerson): Person => ({
  name,
  groups: [...groups],
  methods: subject === null ? [] : ['sign_in'],
  last_seen_at,
  suspended: suspended_at !== null,
});

/** Notes that no key names the person any more: the open links end, and channels send none. */
export function personLeft({ people }: Transaction, responder: string, now: Date): void {
  const person = people.get(nameKey(responder))!;
  const name = person.name === '' ? responder.trim().normalize('NFC') : person.name;
  people.put({ ...person, name, left_at: now.toISOString(), links_end_at: now.toISOString() });
}

/** Whether an answer link in the person's name that was made at a time has ended with the person. */
export function linkHasEnded(person: StoredPerson | undefined, created_at: string): boolean {
  if (person === undefined) return false;
  return person.suspended_at !== null || (person.links_end_at !== null && created_at <= person.links_end_at);
}
