import { scopes as allScopes, type Scope } from '../model/common.ts';

/** What the operator says about the claims of the identity provider. */
export interface ClaimRules {
  /** The claim with the name that answers carry; undefined: `email`, if the provider has verified it. */
  readonly nameClaim: string | undefined;
  /** The claim with the person's groups; undefined: none. */
  readonly groupsClaim: string | undefined;
  /** What the names of groups begin with here. */
  readonly groupPrefix: string;
  /** The claim that names the tenant; undefined: `tenant` does. */
  readonly tenantClaim: string | undefined;
  readonly tenant: string;
  /** What the members of a group may do, by its name with the prefix; `*` for everybody. */
  readonly rights: Readonly<Record<string, readonly string[]>>;
}

/** A person whom the identity provider knows. */
export interface Person {
  /** The provider's id of the person (`sub`), and the provider. */
  readonly subject: string;
  readonly issuer: string;
  /** The name that the person's answers carry. */
  readonly name: string;
}

/** Whether two addresses are those of one provider: operators and providers write a slash at the end or not. */
export const isSameIssuer = (one: string, other: string): boolean => bareIssuer(one) === bareIssuer(other);

/** The address of a provider without a slash at its end. */
export const bareIssuer = (issuer: string): string => issuer.replace(/\/+$/, '');

/** The ways to write the address of a provider: one of them is stored where it was written so then. */
export const spellingsOf = (issuer: string): string[] => {
  const bare = bareIssuer(issuer);
  return [bare, `${bare}/`];
};

/** The claims of an ID token, of an access token or of an introspection. */
export type Claims = Readonly<Record<string, unknown>>;

/** What a person may do who is in none of the groups that the settings name, unless they say otherwise. */
export const defaultRights: ClaimRules['rights'] = { '*': ['read', 'respond'] };

/** The rights that the settings may give. */
export const knownRights: readonly string[] = [...new Set([...allScopes, 'erase', 'admin'])];

/** The most groups of a person that count, and the most characters of the name of one. */
const maxGroups = 1000;
const maxGroupLength = 255;

/** The longest name. */
const maxNameLength = 255;

/** The value of a claim: its name may be a path of names with dots, as in `realm_access.roles`, unless there is a claim of that whole name. */
function claimOf(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  return name.split('.').reduce<unknown>((value, part) => {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined;
    return (value as Claims)[part];
  }, claims);
}

/**
 * A sign that does not show, with which two names would look like one. Joiners and the selector of emoji have their place behind
 * an emoji, and behind a letter of a script that joins letters.
 */
const hidden =
  /(?!\u200c|\u200d|\ufe0f)\p{Default_Ignorable_Code_Point}|(?<!\p{Extended_Pictographic}|(?![\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{Script=Inherited}])[\p{L}\p{M}])(?:\u200c|\u200d|\ufe0f)/u;

const isName = (value: unknown): value is string =>
  typeof value === 'string' && value.trim() !== '' && value.length <= maxNameLength && !/\p{Cc}/u.test(value) && value.isWellFormed();

/** The name that the person's answers carry; undefined: the claims have none that counts. */
export function personName(claims: Claims, { nameClaim }: Pick<ClaimRules, 'nameClaim'>): string | undefined {
  const value = nameClaim !== undefined ? claimOf(claims, nameClaim) : isVerified(claims) ? claims.email : undefined;
  return isName(value) && !hidden.test(value) ? value.trim().normalize('NFC') : undefined;
}

/** Some providers send the boolean as a text. */
const isVerified = ({ email_verified }: Claims): boolean => email_verified === true || email_verified === 'true';

/** Why the claims give a person no name, as a sentence for that person. */
export const noName = ({ nameClaim }: Pick<ClaimRules, 'nameClaim'>): string =>
  nameClaim === undefined
    ? 'The identity provider names no verified mail address for you, or one with signs that do not show. The operator can name another claim in SERVICE_OIDC_NAME_CLAIM.'
    : `The identity provider sends no usable claim ${nameClaim} for you, which SERVICE_OIDC_NAME_CLAIM names.`;

/** The groups in the claims, with the prefix. */
export function groupsIn(claims: Claims, { groupsClaim, groupPrefix }: Pick<ClaimRules, 'groupsClaim' | 'groupPrefix'>): string[] {
  const value = groupsClaim === undefined ? undefined : claimOf(claims, groupsClaim);
  const named = Array.isArray(value) ? value : typeof value === 'string' ? [value] : [];
  const usable = named.filter((group): group is string => isName(group) && group.length <= maxGroupLength);
  return [...new Set(usable.slice(0, maxGroups).map((group) => groupPrefix + group))];
}

/** The tenant that the claims name, by its id or its name; undefined: the claim is missing. */
export function tenantIn(claims: Claims, { tenantClaim, tenant }: Pick<ClaimRules, 'tenantClaim' | 'tenant'>): string | undefined {
  if (tenantClaim === undefined) return tenant;
  const value = claimOf(claims, tenantClaim);
  return isName(value) ? value : undefined;
}

/** What members of the groups may do. */
export interface Granted {
  readonly scopes: readonly Scope[];
  readonly admin: boolean;
}

/** What members of the groups may do: all that one of their groups may. */
export function grantedTo(groups: readonly string[], { rights }: Pick<ClaimRules, 'rights'>): Granted {
  const given = new Set(['*', ...groups].flatMap((group) => (Object.hasOwn(rights, group) ? rights[group]! : [])));
  const admin = given.has('admin');
  return { scopes: allScopes.filter((scope) => admin || given.has(scope)), admin };
}

/** The scopes that tokens may hold, by the right that each stands for. */
const tokenScopes = { read: 'baton:read', work: 'baton:work', respond: 'baton:respond', manage: 'baton:manage' } as const;

/** The rights that a token may give. */
type TokenRight = keyof typeof tokenScopes;

/** The scope of a token for a right; undefined: no token gives it. */
export const tokenScope = (scope: Scope): string | undefined => (tokenScopes as Partial<Record<Scope, string>>)[scope];

/** The rights that the scopes of a token name, as text with spaces between or as a list. */
export function tokenRights(scope: unknown): readonly TokenRight[] {
  const held = new Set(Array.isArray(scope) ? scope : typeof scope === 'string' ? scope.split(' ') : []);
  return (Object.keys(tokenScopes) as TokenRight[]).filter((right) => held.has(tokenScopes[right]));
}

/** Who holds a token. */
interface TokenHolder {
  readonly agent: string | undefined;
  /** The provider's id of the person; undefined: a program got the token for itself. */
  readonly subject: string | undefined;
  /** The person's name; undefined: there is no person, or the token does not name it. */
  readonly name: string | undefined;
  /** Whether the token is for one agent, so that it sees what is that agent's alone. */
  readonly seesOwn: boolean;
}

/** The agent and the person behind a token. A token that a program got for itself has no person, whatever its claims say. */
export function holderOf(claims: Claims, rules: Pick<ClaimRules, 'nameClaim'>): TokenHolder {
  const client = [claims.client_id, claims.azp, claims.cid].find(isName);
  const isProgram = claims.sub === undefined || claims.sub === client || claims.idtyp === 'app';
  const name = isProgram ? undefined : personName(claims, rules);
  // A claim that is no name gives nothing: without it the token would see more.
  const seesOwn = claims.agent_id !== undefined;
  const agent = !seesOwn ? (client ?? name) : isName(claims.agent_id) ? claims.agent_id : undefined;
  return { agent, subject: isProgram ? undefined : String(claims.sub), name, seesOwn };
}
