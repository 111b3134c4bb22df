import { readJson } from '../kit/json.ts';
import { isLoopback } from '../kit/loopback.ts';
import { checked, fileText, listOf, oneOf, type SettingsOf, type SettingsTable, text, whole } from '../kit/settings.ts';
import { type ClaimRules, defaultRights, knownRights } from './rules/identity.ts';

/** What is wrong with the address of an identity provider. */
function issuerProblem(value: string): string | undefined {
  const url = URL.parse(value);
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname));
  const isPlain = isSafe && url.username === '' && !/[?#]/.test(value);
  return isPlain ? undefined : 'the https address of the issuer, or http on this machine, without a query';
}

/** What groups may do. */
function rightsByGroup(value: string): Readonly<Record<string, readonly string[]>> {
  const wrong = (why: string) => new Error(`a JSON object from groups to lists of ${knownRights.join(', ')}: ${why}`);
  let given: unknown;
  try {
    given = readJson(value);
  } catch {
    throw wrong('it is no JSON');
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw wrong('it is no object');
  for (const [group, rights] of Object.entries(given)) {
    if (!Array.isArray(rights)) throw wrong(`${JSON.stringify(group)} has no list`);
    const unknown = rights.find((right) => !knownRights.includes(right));
    if (unknown !== undefined) throw wrong(`there is no right ${JSON.stringify(unknown)}`);
  }
  return given as Record<string, string[]>;
}

/** The settings of sign-in and of tokens. */
export const identitySettings = {
  oidcIssuer: {
    variable: 'SERVICE_OIDC_ISSUER',
    fallback: undefined,
    help: 'The issuer of an OpenID Connect provider. People may then sign in, and its tokens are taken where keys are.',
    parse: checked(issuerProblem),
  },
  oidcClientId: {
    variable: 'SERVICE_OIDC_CLIENT_ID',
    fallback: undefined,
    help: 'The id of the client for sign-in, as the provider knows it. If not set, nobody signs in, and only tokens are taken.',
    parse: text,
  },
  oidcClientSecret: {
    variable: 'SERVICE_OIDC_CLIENT_SECRET',
    fallback: undefined,
    help: 'The secret of that client; a public client has none.',
    parse: text,
  },
  oidcClientSecretFile: {
    variable: 'SERVICE_OIDC_CLIENT_SECRET_FILE',
    fallback: undefined,
    help: 'A file with the secret of that client, instead of `SERVICE_OIDC_CLIENT_SECRET`.',
    parse: fileText,
  },
  oidcScopes: {
    variable: 'SERVICE_OIDC_SCOPES',
    fallback: undefined,
    help: 'The scopes that a sign-in requests, separated by spaces. If not set: `openid profile email`, and `offline_access` where the provider announces it.',
    parse: checked((value) => (value.split(' ').includes('openid') ? undefined : 'scopes separated by spaces, with openid')),
  },
  oidcNameClaim: {
    variable: 'SERVICE_OIDC_NAME_CLAIM',
    fallback: undefined,
    help: 'The claim with the name that answers carry. If not set: `email`, if the provider says that it is verified.',
    parse: text,
  },
  oidcGroupsClaim: {
    variable: 'SERVICE_OIDC_GROUPS_CLAIM',
    fallback: undefined,
    help: 'The claim with the groups of a person, such as `groups` or `realm_access.roles`.',
    parse: text,
  },
  oidcGroupPrefix: {
    variable: 'SERVICE_OIDC_GROUP_PREFIX',
    fallback: 'idp:',
    help: "What the names of the provider's groups begin with here.",
    parse: text,
  },
  oidcTenantClaim: {
    variable: 'SERVICE_OIDC_TENANT_CLAIM',
    fallback: undefined,
    help: 'The claim that names the tenant, by its id or by a name that only one tenant has. If not set: `SERVICE_OIDC_TENANT`.',
    parse: text,
  },
  oidcTenant: {
    variable: 'SERVICE_OIDC_TENANT',
    fallback: 'default',
    help: 'The tenant of all people and tokens, by its id or by a name that only one tenant has.',
    parse: text,
  },
  oidcRights: {
    variable: 'SERVICE_OIDC_RIGHTS',
    fallback: JSON.stringify(defaultRights),
    help: 'JSON: what the members of a group may do, by its name with the prefix; `*` for everybody.',
    parse: rightsByGroup,
  },
  oidcRequired: {
    variable: 'SERVICE_OIDC_REQUIRED',
    fallback: '',
    help: 'Comma-separated: `console`, where keys then sign nobody in, and `answers`, which then only people give who have signed in; links ask for it.',
    parse: listOf(oneOf(['console', 'answers'])),
  },
  oidcAudience: {
    variable: 'SERVICE_OIDC_AUDIENCE',
    fallback: '',
    help: 'Further audiences of tokens, comma-separated, besides `SERVICE_PUBLIC_URL` and, at `/mcp`, that address with `/mcp`.',
    parse: listOf(text),
  },
  oidcTokenTypes: {
    variable: 'SERVICE_OIDC_TOKEN_TYPES',
    fallback: 'at+jwt',
    help: 'The types (`typ`) of access tokens that are taken, comma-separated: `at+jwt`, and `JWT` for providers that say no more.',
    parse: listOf(oneOf(['at+jwt', 'JWT'])),
  },
  sessionHours: {
    variable: 'SERVICE_SESSION_HOURS',
    fallback: '12',
    help: 'How long a person stays signed in, in hours.',
    parse: whole(1, 720),
  },
  sessionIdleMinutes: {
    variable: 'SERVICE_SESSION_IDLE_MINUTES',
    fallback: '60',
    help: 'After how many minutes without a request a person is signed out.',
    parse: whole(1, 43_200),
  },
  sessionKey: {
    variable: 'SERVICE_SESSION_KEY',
    fallback: undefined,
    help: "The key that encrypts the provider's tokens of sessions: 32 bytes in base64. If not set, the first start makes one and stores it in the database. With another key, all sessions end.",
    parse: checked((value) => (Buffer.from(value, 'base64').length === 32 ? undefined : '32 bytes in base64')),
  },
} as const satisfies SettingsTable;

type IdentitySettings = SettingsOf<typeof identitySettings> & { readonly publicUrl: string | undefined };

/** What is wrong with these settings together, one sentence each. */
export function identityProblems(settings: IdentitySettings): string[] {
  const { oidcIssuer, oidcClientId, oidcClientSecret, oidcClientSecretFile, oidcRights, oidcGroupPrefix, oidcRequired, publicUrl } =
    settings;
  const foreign = Object.keys(oidcRights).find((group) => group !== '*' && !group.startsWith(oidcGroupPrefix));
  const checks: readonly [boolean, string][] = [
    [oidcIssuer === undefined && oidcClientId !== undefined, 'SERVICE_OIDC_CLIENT_ID needs SERVICE_OIDC_ISSUER.'],
    [oidcRequired.length > 0 && oidcClientId === undefined, 'SERVICE_OIDC_REQUIRED needs SERVICE_OIDC_CLIENT_ID: nobody could sign in.'],
    [oidcIssuer !== undefined && publicUrl === undefined, 'SERVICE_OIDC_ISSUER needs SERVICE_PUBLIC_URL, the address of the service.'],
    [
      oidcClientSecret !== undefined && oidcClientSecretFile !== undefined,
      'SERVICE_OIDC_CLIENT_SECRET and SERVICE_OIDC_CLIENT_SECRET_FILE are both set; set one of them.',
    ],
    [
      oidcIssuer !== undefined && foreign !== undefined,
      `SERVICE_OIDC_RIGHTS names the group ${JSON.stringify(foreign)}; names of groups begin with ${JSON.stringify(oidcGroupPrefix)} (SERVICE_OIDC_GROUP_PREFIX).`,
    ],
  ];
  return checks.flatMap(([isWrong, sentence]) => (isWrong ? [sentence] : []));
}

/** What sign-in is used for where people answer. */
export const signInUse = ({ oidcIssuer, oidcClientId, oidcRequired }: IdentitySettings) => ({
  isOffered: oidcIssuer !== undefined && oidcClientId !== undefined,
  isRequired: oidcRequired.includes('answers'),
  isRequiredInConsole: oidcRequired.includes('console'),
});

/** What an operator registers at the identity provider for sign-in, and how long people stay signed in: one line each; none without sign-in. */
export function signInNotices({ oidcIssuer, oidcClientId, publicUrl = '', sessionHours }: IdentitySettings): string[] {
  if (oidcIssuer === undefined || oidcClientId === undefined) return [];
  const hours = sessionHours === 1 ? '1 hour' : `${sessionHours} hours`;
  return [
    `sign-in, redirect address: ${publicUrl}/sign-in/callback`,
    `sign-in, address after sign-out: ${publicUrl}/signed-out`,
    `sign-in, back-channel logout: ${publicUrl}/sign-in/back-channel-logout`,
    `sign-in, sessions last ${hours}, and at most an hour if the provider gives no refresh tokens`,
  ];
}

/** What the settings say about the claims of the identity provider. */
export const claimRules = (settings: IdentitySettings): ClaimRules => ({
  nameClaim: settings.oidcNameClaim,
  groupsClaim: settings.oidcGroupsClaim,
  groupPrefix: settings.oidcGroupPrefix,
  tenantClaim: settings.oidcTenantClaim,
  tenant: settings.oidcTenant,
  rights: settings.oidcRights,
});
