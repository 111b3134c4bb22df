import { nameKey } from '../model/people.ts';
import { type ClaimRules, type Claims, isSameIssuer, type Person, tenantIn } from '../rules/identity.ts';
import type { FoundTenant } from '../service/authentication.ts';
import type { StoredPerson } from '../store/people.ts';
import type { Store } from '../store/store.ts';

/** The tenant that claims name, or a sentence that says why there is none. */
export async function tenantOf(store: Store, claims: Claims, rules: ClaimRules): Promise<FoundTenant | string> {
  const named = tenantIn(claims, rules);
  if (named === undefined) return `The identity provider sends no claim ${rules.tenantClaim}, which names the tenant.`;
  const [first, second] = await store.tenants.matching(named);
  if (first === undefined) return `There is no tenant ${JSON.stringify(named)}.`;
  if (second !== undefined && first.id !== named.toLowerCase())
    return `Several tenants are called ${JSON.stringify(named)}; name one by its id.`;
  return first;
}

/** Why a person may not act under a name; undefined: the person may. */
export function refusedAs(person: StoredPerson | undefined, { subject, issuer, name }: Person): string | undefined {
  if (person === undefined) return undefined;
  if (person.suspended_at !== null) return `${name} is suspended here.`;
  const isOther = person.subject !== null && (person.subject !== subject || !isSameIssuer(person.issuer!, issuer));
  return isOther ? `The name ${name} belongs to somebody else, who signed in under it first. A manager can release it.` : undefined;
}

/** Why a person may act under no name: it is suspended here under one. Undefined: it is not. */
export async function suspendedAs(store: Store, tenant: number, person: Pick<Person, 'subject' | 'issuer'>): Promise<string | undefined> {
  const name = await store.whole(tenant).people.suspendedName(person);
  return name === undefined ? undefined : `${name} is suspended here.`;
}

/** Whether a name was released since the provider gave it to the person, who then takes it by a new sign-in or a new token alone. */
const wasReleased = ({ subject, last_seen_at, links_end_at }: StoredPerson, named: Date): boolean =>
  subject === null && last_seen_at !== null && links_end_at !== null && named.getTime() < Date.parse(links_end_at);

const releasedSince = ({ name }: Person) => `The name ${name} has been released since.`;

/** Why a person whom `keepPerson` has stored may not act under the name any more; undefined: the person may. */
export const refusedSince = (stored: StoredPerson | undefined, person: Person): string | undefined =>
  refusedAs(stored, person) ?? (stored?.subject ? undefined : releasedSince(person));

/** Whether nobody was let in under a name since its links ended. */
const isFormer = ({ last_seen_at, links_end_at, groups }: StoredPerson): boolean =>
  groups.length === 0 && last_seen_at !== null && links_end_at !== null && last_seen_at <= links_end_at;

/**
 * Stores a person as the identity provider names it. Returns why the person may not act under the name, if so.
 * @param named when the provider gave the person the name: now, when the session began, or when the token was issued
 */
export async function keepPerson(
  store: Store,
  tenant: number,
  { person, groups, named }: { readonly person: Person; readonly groups: readonly string[]; readonly named: Date },
  now: Date,
): Promise<string | undefined> {
  const suspended = await suspendedAs(store, tenant, person);
  if (suspended !== undefined) return suspended;
  const key = nameKey(person.name);
  const others = (await store.whole(tenant).people.namesOf(person)).filter(({ name_key }) => name_key !== key);
  if (others.some(({ last_seen_at }) => last_seen_at !== null && named.getTime() < Date.parse(last_seen_at)))
    return `The identity provider calls you by another name than ${person.name} since.`;
  const former = others.map(({ name_key }) => name_key);
  return store.whole(tenant).commit({
    people: [key, ...former],
    sessionsOf: former,
    work({ people, sessions }) {
      const stored = people.get(key)!;
      const refusal = refusedAs(stored, person);
      if (refusal !== undefined) return refusal;
      if (wasReleased(stored, named)) return releasedSince(person);
      for (const name of former) {
        const other = people.get(name)!;
        if (other.subject === null || refusedAs(other, person) !== undefined || isFormer(other)) continue;
        // One person acts under one name: the one that the provider said last.
        for (const session of sessions.ofPerson(name)) sessions.end(session, now);
        people.put({ ...other, groups: [], links_end_at: now.toISOString() });
      }
      // Who is let in again has not left.
      people.put({ ...stored, ...person, groups, last_seen_at: now.toISOString(), left_at: null });
      return undefined;
    },
  });
}
