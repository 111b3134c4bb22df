import Type, { type Static } from 'typebox';
import { choice, Id, IdParams, name, orNull, timestamp } from '../../kit/schemas.ts';
import { failing, IdempotencyKey, tiers } from './common.ts';
import { defineRoute } from './route.ts';

const closed = { additionalProperties: false };
const tier = choice(tiers, { description: 'The tier.' });
const id = '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b';
const created_at = '2026-03-01T09:30:00.000Z';

/** An API key as it is listed: never its value. */
export const ApiKey = Type.Object(
  {
    id: Id,
    name: Type.String(),
    tier,
    prefix: Type.String({ description: 'The first eight characters of the key.' }),
    admin: Type.Boolean({ description: 'Whether it may manage tenants.' }),
    created_at: timestamp('When it was made.'),
    expires_at: orNull(timestamp('When it ends.'), 'When it ends, since another key has taken its place; null: never.'),
  },
  closed,
);
export const NewApiKey = Type.Object(
  { ...ApiKey.properties, key: Type.String({ description: 'The key itself; it is shown only here.' }) },
  closed,
);
export const KeyRequest = Type.Object(
  {
    name: name('What the key is for.'),
    tier: Type.Optional(choice(tiers, { description: "Not above the tenant's; the tenant's if left out." })),
    admin: Type.Optional(Type.Boolean({ description: 'An admin key; only an admin may make one.' })),
    tenant_id: Type.Optional(Type.String({ format: 'uuid', description: "Another tenant's; only for an admin." })),
  },
  closed,
);

export const RotateRequest = Type.Object(
  {
    overlap_seconds: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 604_800, description: 'How long the old key goes on beside the new one; an hour if left out.' }),
    ),
  },
  closed,
);

/** A tenant. `handoffs_per_day` null means what its tier allows. */
export const Tenant = Type.Object(
  {
    id: Id,
    name: Type.String(),
    tier,
    handoffs_per_day: orNull(Type.Integer({ minimum: 0 }), 'The most packets a UTC day; null for what the tier allows.'),
    max_api_keys: Type.Integer({ minimum: 0, description: 'The most keys it may have; 1, 5 or 25, by tier, until it is set.' }),
    created_at: timestamp('When it was made.'),
    updated_at: timestamp('When it last changed.'),
    deleted_at: orNull(timestamp('When it was deleted.')),
  },
  closed,
);
const cap = Type.Union([Type.Integer({ minimum: 0, maximum: 1_000_000_000 }), Type.Null()], { description: "Null for the tier's." });
const maxKeys = (description: string) => Type.Integer({ minimum: 0, maximum: 100_000, description });
export const TenantRequest = Type.Object(
  {
    name: name('What it is called.'),
    tier: Type.Optional(choice(tiers, { description: 'The tier.', default: 'free' })),
    handoffs_per_day: Type.Optional(cap),
    max_api_keys: Type.Optional(maxKeys('The most keys it may have. Left out: 1, 5 or 25, by tier.')),
  },
  closed,
);
export const TenantPatch = Type.Object(
  {
    name: Type.Optional(name('What it is called.')),
    tier: Type.Optional(tier),
    handoffs_per_day: Type.Optional(cap),
    max_api_keys: Type.Optional(maxKeys('The most keys it may have. Until it is set it follows the tier.')),
  },
  closed,
);

export type ApiKey = Static<typeof ApiKey>;
export type NewApiKey = Static<typeof NewApiKey>;
export type KeyRequest = Static<typeof KeyRequest>;
export type Tenant = Static<typeof Tenant>;
export type TenantRequest = Static<typeof TenantRequest>;
export type TenantPatch = Static<typeof TenantPatch>;

const keyExample = { id, name: 'ci', tier: 'pro', prefix: 'svc_9Zk3', admin: false, created_at, expires_at: null };
const tenantExample = {
  id,
  name: 'Acme',
  tier: 'pro',
  handoffs_per_day: null,
  max_api_keys: 5,
  created_at,
  updated_at: created_at,
  deleted_at: null,
};

export const createKey = defineRoute({
  id: 'createKey',
  method: 'POST',
  path: '/keys',
  tag: 'keys',
  access: 'key',
  summary: 'Create an API key',
  description:
    'The key works at once, for the tenant of the key that makes it. An admin key may also make admin keys, and keys of other tenants.',
  body: KeyRequest,
  bodyExample: { name: 'ci', tier: 'pro' },
  nullIsAbsent: true,
  headers: IdempotencyKey,
  responses: {
    201: { schema: NewApiKey, description: 'The key; its value is shown only here.', example: { ...keyExample, key: 'svc_...' } },
    ...failing(401, 403, 404, 409, 413, 415, 429),
  },
});
export const rotateKey = defineRoute({
  id: 'rotateKey',
  method: 'POST',
  path: '/keys/{id}/rotate',
  tag: 'keys',
  access: 'key',
  summary: 'Rotate an API key',
  description:
    'Makes a key of the same name, tier and rights that takes the place of this one, which goes on for the overlap and then ends. ' +
    "The two count as one, of the tenant's keys and against the limit of a minute. A key may rotate itself; an admin key is rotated by an admin key.",
  params: IdParams,
  body: RotateRequest,
  bodyOptional: true,
  bodyExample: { overlap_seconds: 3600 },
  nullIsAbsent: true,
  headers: IdempotencyKey,
  responses: {
    201: { schema: NewApiKey, description: 'The new key; its value is shown only here.', example: { ...keyExample, key: 'svc_...' } },
    ...failing(401, 403, 404, 409, 413, 415, 429),
  },
});
export const listKeys = defineRoute({
  id: 'listKeys',
  method: 'GET',
  path: '/keys',
  tag: 'keys',
  access: 'key',
  summary: "List the tenant's API keys",
  description: "The keys that are neither revoked nor ended. Their values are not kept, so they can't be shown.",
  responses: {
    200: { schema: Type.Array(ApiKey), description: 'The keys, oldest first, without their values.', example: [keyExample] },
    ...failing(401, 429),
  },
});
export const deleteKey = defineRoute({
  id: 'deleteKey',
  method: 'DELETE',
  path: '/keys/{id}',
  tag: 'keys',
  access: 'key',
  summary: 'Revoke an API key',
  description: "From the answer on the key is refused everywhere. An admin key may revoke any tenant's key.",
  params: IdParams,
  responses: { 204: { description: 'The key is refused from now on.' }, ...failing(401, 404, 429) },
});

const one = (description: string) => ({ schema: Tenant, description, example: tenantExample });

export const createTenant = defineRoute({
  id: 'createTenant',
  method: 'POST',
  path: '/tenants',
  tag: 'tenants',
  access: 'admin',
  summary: 'Create a tenant',
  description: 'A tenant begins without keys; make its first with `POST /keys` and its `tenant_id`.',
  body: TenantRequest,
  bodyExample: { name: 'Acme', tier: 'pro' },
  nullIsAbsent: true,
  responses: { 201: one('The tenant.'), ...failing(401, 403, 413, 415, 429) },
});
export const listTenants = defineRoute({
  id: 'listTenants',
  method: 'GET',
  path: '/tenants',
  tag: 'tenants',
  access: 'admin',
  summary: 'List tenants',
  description: 'Every tenant that is not deleted.',
  responses: {
    200: { schema: Type.Array(Tenant), description: 'The tenants that are not deleted, oldest first.', example: [tenantExample] },
    ...failing(401, 403, 429),
  },
});
export const getTenant = defineRoute({
  id: 'getTenant',
  method: 'GET',
  path: '/tenants/{id}',
  tag: 'tenants',
  access: 'admin',
  summary: 'Get a tenant',
  description: 'A deleted tenant is not found.',
  params: IdParams,
  responses: { 200: one('The tenant.'), ...failing(401, 403, 404, 429) },
});
export const patchTenant = defineRoute({
  id: 'patchTenant',
  method: 'PATCH',
  path: '/tenants/{id}',
  tag: 'tenants',
  access: 'admin',
  summary: 'Update a tenant',
  description: 'Changes what is named and leaves the rest. A new tier counts from the next request on.',
  params: IdParams,
  body: TenantPatch,
  bodyExample: { tier: 'business' },
  responses: { 200: one('The tenant as it is now.'), ...failing(401, 403, 404, 413, 415, 429) },
});
export const deleteTenant = defineRoute({
  id: 'deleteTenant',
  method: 'DELETE',
  path: '/tenants/{id}',
  tag: 'tenants',
  access: 'admin',
  summary: 'Delete a tenant',
  description: 'Softly: its data stays, its keys are refused at once.',
  params: IdParams,
  responses: { 204: { description: 'Done.' }, ...failing(401, 403, 404, 409, 429) },
});
export const listTenantKeys = defineRoute({
  id: 'listTenantKeys',
  method: 'GET',
  path: '/tenants/{id}/keys',
  tag: 'tenants',
  access: 'admin',
  summary: "List a tenant's API keys",
  description: 'What the tenant itself sees with `GET /keys`.',
  params: IdParams,
  responses: {
    200: { schema: Type.Array(ApiKey), description: 'The keys, without their values.', example: [keyExample] },
    ...failing(401, 403, 404, 429),
  },
});
