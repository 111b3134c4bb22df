import type { Tier } from '../model/common.ts';
import { nameKey } from '../model/people.ts';
import { personOrigin } from '../rules/exclusion.ts';
import { type ClaimRules, type Claims, grantedTo, type Person, tenantIn } from '../rules/identity.ts';
import type { Caller } from '../service/authentication.ts';
import type { StoredPerson } from '../store/people.ts';
import type { Store } from '../store/store.ts';

/** The tenant of a person or of a token. */
export interface FoundTenant {
  readonly id: string;
  readonly number: number;
  readonly tier: Tier;
  readonly handoffs_per_day: number | null;
}

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
  const isOther = person.subject !== null && (person.subject !== subject || person.issuer !== issuer);
  return isOther ? `The name ${name} belongs to somebody else, who signed in under it first. A manager can release it.` : undefined;
}

/** Stores a person as the identity provider names it. Returns why the person may not act under the name, if so. */
export function keepPerson(
  store: Store,
  tenant: number,
  person: Person,
  groups: readonly string[],
  now: Date,
): Promise<string | undefined> {
  const key = nameKey(person.name);
  return store.whole(tenant).commit({
    people: [key],
    work({ people }) {
      const stored = people.get(key)!;
      const refusal = refusedAs(stored, person);
      if (refusal !== undefined) return refusal;
      people.put({ ...stored, ...person, groups, last_seen_at: now.toISOString() });
      return undefined;
    },
  });
}

/** What the callers of a tenant have in common who have no key. */
export const limitsOf = ({ id, number, tier, handoffs_per_day }: FoundTenant) => ({
  ...{ key_id: null, tenant_id: id, tenant_number: number, tier, tenant_tier: tier, handoffs_per_day, lineage: [] },
});

/** A person as a caller, with what its groups may do. */
export function callerOfPerson(tenant: FoundTenant, person: Person, groups: readonly string[], rules: ClaimRules): Caller {
  const { scopes, admin } = grantedTo(groups, rules);
  const { name } = person;
  // As for a key: an admin is not restricted.
  const rights = { scopes: admin ? null : scopes, agents: null, responder: name, admin };
  return { kind: 'session', ...limitsOf(tenant), ...rights, name, origin: personOrigin(name), person };
}
