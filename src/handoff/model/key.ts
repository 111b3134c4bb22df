import Type, { type Static } from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { choice, described, Id, IdParams, name, object, orNull, timestamp } from '../../kit/schemas.ts';
import { failing, IdempotencyKey, indexedName, scopes, tiers } from './common.ts';
import { defineRoute } from './route.ts';

const tier = choice(tiers, { description: 'The tier.' });
const scope = choice(scopes, {
  description: '`read`; `work` on packets; `respond` to questions; `manage` keys and webhooks.',
});
const id = '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b';
const created_at = '2026-03-01T09:30:00.000Z';

/** An API key without its value. */
export const ApiKey = object({
  id: Id,
  name: Type.String(),
  tier,
  prefix: Type.String({ description: 'The first eight characters of the key.' }),
  admin: Type.Boolean({ description: 'Whether it may manage tenants.' }),
  created_at: timestamp('When it was created.'),
  expires_at: orNull(timestamp('When it expires.'), 'When a rotated key expires; null for a key that was not rotated.'),
  scopes: Type.Array(scope, { description: 'What it may do.' }),
  agents: orNull(Type.Array(Type.String()), 'The ids of the agents that it may act as; null for any.'),
  responder: orNull(Type.String(), 'The person in whose name it answers; null for any.'),
  sees: choice(['all', 'own'], { description: 'Whether it sees all packets of the tenant, or its own.' }),
  queues: orNull(Type.Array(Type.String()), 'For a key that sees its own: the target agents whose packets it also sees; else null.'),
});
export const NewApiKey = object({ ...ApiKey.properties, key: Type.String({ description: 'The key itself. It is never shown again.' }) });
export const KeyRequest = object({
  name: name('What the key is for.'),
  tier: Type.Optional(choice(tiers, { description: "At most the tenant's tier, which is the default." })),
  admin: Type.Optional(Type.Boolean({ description: 'Whether to create an admin key; needs an admin key.' })),
  tenant_id: Type.Optional(Type.String({ format: 'uuid', description: 'The tenant to create the key for; needs an admin key.' })),
  scopes: Type.Optional(
    Type.Array(scope, {
      minItems: 1,
      maxItems: scopes.length,
      description:
        'What the key may do, at most what the creating key may do. By default everything that the creating key may do, except act as an admin key.',
    }),
  ),
  agents: Type.Optional(
    Type.Array(indexedName('The id of an agent.'), {
      minItems: 1,
      maxItems: 100,
      description: 'The agents that the key may act as: source agent, claimant and `X-Agent-Id`. Any if left out.',
    }),
  ),
  responder: Type.Optional(name('The person in whose name the key answers: `responded_by` must be this. Any if left out.')),
  sees: Type.Optional(
    choice(['all', 'own'], {
      description:
        "With `own` the key sees only packets whose source, target or holder is one of its `agents`, or whose target is one of its `queues`; any other packet is unknown to it. Such a key needs `agents`, and can't have the scope `manage`. `all` if left out.",
    }),
  ),
  queues: Type.Optional(
    Type.Array(indexedName('The id of an agent.'), {
      minItems: 1,
      maxItems: 100,
      description: 'For a key that sees its own: the target agents whose packets it also sees and claims. Its `agents` if left out.',
    }),
  ),
});

const RotateRequest = object({
  overlap_seconds: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 604_800, description: 'How long the old key remains valid; an hour if left out.' }),
  ),
});

export type ApiKey = Static<typeof ApiKey>;
export type NewApiKey = Static<typeof NewApiKey>;
export type KeyRequest = Static<typeof KeyRequest>;

const keyRights = { scopes: ['read', 'work'], agents: ['resolver'], responder: null, sees: 'own', queues: ['resolver'] };
const keyExample = { id, name: 'ci', tier: 'pro', prefix: 'svc_9Zk3', admin: false, created_at, expires_at: null, ...keyRights };
/** The key of a request, with its tenant. */
export const OwnKey = object({
  kind: choice(['key', 'session', 'token'], {
    description: 'What the request was sent with: a key, the session of a person who signed in, or a token of the identity provider.',
  }),
  ...ApiKey.properties,
  id: orNull(Id, 'Null for a session or a token.'),
  prefix: orNull(Type.String(), 'The first eight characters of the key; null for a session or a token.'),
  created_at: orNull(ApiKey.properties.created_at, 'Null for a session or a token.'),
  tenant: described('The tenant of the key.', { id: Id, name: Type.String(), tier }),
});
export type OwnKey = Static<typeof OwnKey>;

/** The routes of API keys. */
const keyRoutes = routeTable('keys', {
  createKey: defineRoute({
    method: 'POST',
    path: '/keys',
    access: 'manage',
    summary: 'Create an API key',
    description:
      "The key is valid immediately and belongs to the caller's tenant. It may do at most what the creating key may do, and `scopes`, `agents`, `responder` and `sees` restrict it further. An admin key may also create admin keys, and keys for other tenants.",
    body: KeyRequest,
    bodyExample: { name: 'ci', tier: 'pro', scopes: ['read', 'work'], agents: ['resolver'], sees: 'own' },
    nullIsAbsent: true,
    headers: IdempotencyKey,
    responses: {
      201: { schema: NewApiKey, description: 'The key. Its value is never shown again.', example: { ...keyExample, key: 'svc_...' } },
      ...failing(401, 403, 404, 409, 413, 415, 429),
    },
  }),
  rotateKey: defineRoute({
    method: 'POST',
    path: '/keys/{id}/rotate',
    access: 'manage',
    summary: 'Rotate an API key',
    description:
      'Creates a key with the same name, tier and rights to replace this one, which stays valid for the overlap and then expires. ' +
      "The two count as one key, towards the tenant's maximum and the limit per minute. A key with the scope `manage` may rotate itself and keys that may do no more than it; only an admin key may rotate an admin key.",
    params: IdParams,
    body: RotateRequest,
    bodyOptional: true,
    bodyExample: { overlap_seconds: 3600 },
    nullIsAbsent: true,
    headers: IdempotencyKey,
    responses: {
      201: { schema: NewApiKey, description: 'The new key. Its value is never shown again.', example: { ...keyExample, key: 'svc_...' } },
      ...failing(401, 403, 404, 409, 413, 415, 429),
    },
  }),
  listKeys: defineRoute({
    method: 'GET',
    path: '/keys',
    access: 'read',
    alternative: 'manage',
    summary: "List the tenant's API keys",
    description: "The keys that are neither revoked nor expired. Their values are not stored, so they can't be shown.",
    responses: {
      200: { schema: Type.Array(ApiKey), description: 'The keys, oldest first, without their values.', example: [keyExample] },
      ...failing(401, 403, 429),
    },
  }),
  getOwnKey: defineRoute({
    method: 'GET',
    path: '/keys/self',
    access: 'any',
    summary: 'Get the key of the request',
    description:
      'What the key in `X-API-Key` may do, and the tenant that it belongs to; or the session, or the token. Any key may ask for itself.',
    responses: {
      200: {
        schema: OwnKey,
        description: 'The key, without its value.',
        example: { kind: 'key', ...keyExample, tenant: { id, name: 'Acme', tier: 'pro' } },
      },
      ...failing(401, 429),
    },
  }),
  deleteKey: defineRoute({
    method: 'DELETE',
    path: '/keys/{id}',
    access: 'manage',
    summary: 'Revoke an API key',
    description:
      "The key is refused on every instance from now on. A key can't revoke one that may do more. An admin key may revoke any tenant's key.",
    params: IdParams,
    responses: { 204: { description: 'The key is revoked.' }, ...failing(401, 403, 404, 429) },
  }),
});

/** The routes of the keys of any tenant, for admin keys. */
const tenantKeyRoutes = routeTable('tenants', {
  listTenantKeys: defineRoute({
    method: 'GET',
    path: '/tenants/{id}/keys',
    access: 'admin',
    summary: "List a tenant's API keys",
    description: 'The same list that the tenant gets with `GET /keys`.',
    params: IdParams,
    responses: {
      200: { schema: Type.Array(ApiKey), description: 'The keys, without their values.', example: [keyExample] },
      ...failing(401, 403, 404, 429),
    },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const keyApi = {
  tag: { name: 'keys', description: "A tenant's API keys." },
  routes: { ...keyRoutes, ...tenantKeyRoutes },
  schemas: { ApiKey, NewApiKey, OwnKey, KeyRequest, RotateRequest },
};
