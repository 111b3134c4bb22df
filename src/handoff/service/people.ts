import { conflict, notFound } from '../../kit/errors.ts';
import { readJson } from '../../kit/json.ts';
import type { Delegation } from '../model/delegation.ts';
import { isSamePerson, nameKey } from '../model/people.ts';
import type { Person } from '../model/person.ts';
import { personOrigin } from '../rules/exclusion.ts';
import type { Page } from '../store/page-size.ts';
import type { StoredPerson } from '../store/people.ts';
import type { Transaction } from '../store/transaction.ts';
import { type Caller, provenanceOf } from './authentication.ts';
import { delegationNoun } from './delegations.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { createDocumentService } from './documents.ts';
import { storedStanding } from './policy-cache.ts';
import { standingNoun } from './standing.ts';
import { auditRecord } from './trail.ts';

/** The most of what acts in a name that a refusal names. */
const maxNamed = 20;

/** The longest name of a person, in characters. */
const maxNameLength = 1024;

/** The operations on people. */
export function createPeopleService({ store, clock }: ServiceDependencies) {
  const published = createDocumentService({ store, clock });

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
      isOfAllNames,
      work,
    }: {
      action: string;
      isNew: boolean;
      /** Whether it is the same for all names of the person at the identity provider. */
      isOfAllNames: boolean;
      work: (person: StoredPerson, transaction: Transaction, now: Date) => StoredPerson | undefined;
    },
  ): Promise<Person> {
    const key = nameKey(given);
    const at = provenanceOf(caller, clock());
    const own = store.of(caller);
    requireName(given);
    const known = isOfAllNames ? await own.people.find(key) : undefined;
    const { subject, issuer } = known ?? { subject: null, issuer: null };
    const all = subject === null ? [] : await own.people.namesOf({ subject, issuer: issuer! });
    const others = all.flatMap(({ name_key }) => (name_key === key ? [] : [name_key]));
    await own.commit({
      people: [key, ...others],
      sessionsOf: [key, ...others],
      work(transaction) {
        const stored = transaction.people.get(key)!;
        if (stored.name === '' && !isNew) throw notFound('person');
        const named = stored.name === '' ? { ...stored, name: given.trim().normalize('NFC') } : stored;
        const isSame = (other: StoredPerson) => other.subject !== null && other.subject === stored.subject;
        for (const before of [named, ...others.map((name) => transaction.people.get(name)!).filter(isSame)]) {
          const after = work(before, transaction, at.now);
          if (after === undefined) continue;
          transaction.people.put(after);
          transaction.trail.audit(auditRecord(caller, 'person', action, { name: after.name }), at);
        }
      },
    });
    return (await everybody(caller)).find(({ name }) => nameKey(name) === key)!;
  }

  /**
   * Ends what the person of a name has approved for later, and the delegations from and to the name: they are not the next person's.
   * @throws ServiceError 409 while keys, channels or schedules act for the person
   */
  async function endPowers(caller: Caller, given: string): Promise<void> {
    requireName(given);
    const own = store.of(caller);
    const person = await own.people.find(nameKey(given));
    if (person === undefined || person.subject === null) return;
    const { name } = person;
    const origin = personOrigin(name);
    const isNamed = ({ responder }: { readonly responder: string | null }) => responder !== null && isSamePerson(responder, name);
    const [keys, channels, schedules, standing, delegations] = await Promise.all([
      store.keys.of(caller.tenant_id, clock()),
      own.webhooks.channels(),
      own.schedules.ofOrigin(origin),
      own.documents.all('standing'),
      own.documents.all('delegation'),
    ]);
    const acting = [
      ...keys.filter(isNamed).map(({ id }) => `the key ${id}`),
      ...channels.filter((channel) => isNamed(channel) || channel.key_origin === origin).map(({ id }) => `the channel ${id}`),
      ...schedules.map((schedule) => `the schedule ${JSON.stringify(schedule)}`),
    ];
    const more = acting.length > maxNamed ? ` and ${acting.length - maxNamed} more` : '';
    if (acting.length > 0)
      throw conflict(
        `These act for ${name}, and would for the next person: ${acting.slice(0, maxNamed).join(', ')}${more}. Remove them first.`,
      );
    const isOf = ({ person: from, to }: Delegation) => isSamePerson(from, name) || isSamePerson(to, name);
    const ended = [
      ...standing.filter((stored) => isSamePerson(storedStanding(stored).person, name)).map((stored) => [standingNoun, stored] as const),
      ...delegations.filter((stored) => isOf(readJson<Delegation>(stored.document))).map((stored) => [delegationNoun, stored] as const),
    ];
    await Promise.all(ended.map(([noun, stored]) => published.remove(caller, noun, stored.name)));
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
        isOfAllNames: true,
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
        isOfAllNames: true,
        work: (person) =>
          person.suspended_at === null && person.left_at === null ? undefined : { ...person, suspended_at: null, left_at: null },
      }),

    /** Lets somebody else sign in under the name. @throws ServiceError 404, 409 */
    async release(caller: Caller, name: string): Promise<Person> {
      await endPowers(caller, name);
      return change(caller, name, {
        action: 'released',
        isNew: false,
        isOfAllNames: false,
        work(person, { sessions }, now) {
          if (person.subject === null) return undefined;
          for (const session of sessions.ofPerson(person.name_key)) sessions.end(session, now);
          // Links that were made by or for the former one are not the next one's.
          return { ...person, subject: null, issuer: null, groups: [], links_end_at: now.toISOString() };
        },
      });
    },
  };
}

export type PeopleService = ReturnType<typeof createPeopleService>;

/** Requires what can be the name of a person. @throws ServiceError 404 */
function requireName(given: string): void {
  if (nameKey(given) === '' || given.length > maxNameLength || given.includes('\0') || !given.isWellFormed()) throw notFound('person');
}

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
