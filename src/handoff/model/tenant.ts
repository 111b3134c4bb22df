import Type, { type Static } from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { choice, Id, IdParams, name, object, orNull, timestamp } from '../../kit/schemas.ts';
import { failing, tiers } from './common.ts';
import { defineRoute } from './route.ts';

const tier = choice(tiers, { description: 'The tier.' });
const id = '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b';
const created_at = '2026-03-01T09:30:00.000Z';

const requestsDescription = "The maximum number of requests in 60 minutes, of all its keys together; null for the tier's default.";

/** A tenant. `handoffs_per_day` and `requests_per_hour` null mean the defaults of its tier. */
export const Tenant = object({
  id: Id,
  name: Type.String(),
  tier,
  handoffs_per_day: orNull(Type.Integer({ minimum: 0 }), "The maximum number of packets per UTC day; null for the tier's default."),
  requests_per_hour: orNull(Type.Integer({ minimum: 1 }), requestsDescription),
  retention_days: orNull(
    Type.Integer({ minimum: 0 }),
    'Packets are erased this many days after they ended; 0: never; null: as `SERVICE_RETENTION_DAYS` says.',
  ),
  max_api_keys: Type.Integer({ minimum: 0, description: 'The maximum number of API keys it may have; unless set, 1, 5 or 25 by tier.' }),
  created_at: timestamp('When it was created.'),
  updated_at: timestamp('When it last changed.'),
  deleted_at: orNull(timestamp('When it was deleted.')),
});
const requests = Type.Union([Type.Integer({ minimum: 1, maximum: 1_000_000_000 }), Type.Null()], { description: requestsDescription });
const quota = Type.Union([Type.Integer({ minimum: 0, maximum: 1_000_000_000 }), Type.Null()], {
  description: "The maximum number of packets per UTC day; null for the tier's default.",
});
const retention = Type.Union([Type.Integer({ minimum: 0, maximum: 36_500 }), Type.Null()], {
  description: 'Packets are erased this many days after they ended; 0: never; null: as `SERVICE_RETENTION_DAYS` says.',
});
const maxKeys = (description: string) => Type.Integer({ minimum: 0, maximum: 100_000, description });
export const TenantRequest = object({
  name: name('The name of the tenant.'),
  tier: Type.Optional(choice(tiers, { description: 'The tier.', default: 'free' })),
  handoffs_per_day: Type.Optional(quota),
  requests_per_hour: Type.Optional(requests),
  retention_days: Type.Optional(retention),
  max_api_keys: Type.Optional(maxKeys('The maximum number of API keys it may have; 1, 5 or 25 by tier if left out.')),
});
export const TenantPatch = object({
  name: Type.Optional(name('The name of the tenant.')),
  tier: Type.Optional(tier),
  handoffs_per_day: Type.Optional(quota),
  requests_per_hour: Type.Optional(requests),
  retention_days: Type.Optional(retention),
  max_api_keys: Type.Optional(maxKeys('The maximum number of API keys it may have. Until it is set, it follows the tier.')),
});

export type Tenant = Static<typeof Tenant>;
export type TenantRequest = Static<typeof TenantRequest>;
export type TenantPatch = Static<typeof TenantPatch>;

const tenantExample = {
  id,
  name: 'Acme',
  tier: 'pro',
  handoffs_per_day: null,
  requests_per_hour: null,
  retention_days: null,
  max_api_keys: 5,
  created_at,
  updated_at: created_at,
  deleted_at: null,
};

const one = (description: string) => ({ schema: Tenant, description, example: tenantExample });

/** The routes of tenants. */
const tenantRoutes = routeTable('tenants', {
  createTenant: defineRoute({
    method: 'POST',
    path: '/tenants',
    access: 'admin',
    summary: 'Create a tenant',
    description: 'A new tenant has no keys; create its first one with `POST /keys` and its `tenant_id`.',
    body: TenantRequest,
    bodyExample: { name: 'Acme', tier: 'pro' },
    nullIsAbsent: true,
    responses: { 201: one('The tenant.'), ...failing(401, 403, 413, 415, 429) },
  }),
  listTenants: defineRoute({
    method: 'GET',
    path: '/tenants',
    access: 'admin',
    summary: 'List tenants',
    description: 'Every tenant that is not deleted.',
    responses: {
      200: { schema: Type.Array(Tenant), description: 'The tenants that are not deleted, oldest first.', example: [tenantExample] },
      ...failing(401, 403, 429),
    },
  }),
  getTenant: defineRoute({
    method: 'GET',
    path: '/tenants/{id}',
    access: 'admin',
    summary: 'Get a tenant',
    description: 'A request for a deleted tenant gets 404.',
    params: IdParams,
    responses: { 200: one('The tenant.'), ...failing(401, 403, 404, 429) },
  }),
  patchTenant: defineRoute({
    method: 'PATCH',
    path: '/tenants/{id}',
    access: 'admin',
    summary: 'Update a tenant',
    description: 'Changes the given fields and keeps the others. A new tier applies from the next request on.',
    params: IdParams,
    body: TenantPatch,
    bodyExample: { tier: 'business' },
    responses: { 200: one('The updated tenant.'), ...failing(401, 403, 404, 413, 415, 429) },
  }),
  deleteTenant: defineRoute({
    method: 'DELETE',
    path: '/tenants/{id}',
    access: 'admin',
    summary: 'Delete a tenant',
    description: 'A soft delete: the data stays, the keys are refused immediately.',
    params: IdParams,
    responses: { 204: { description: 'Done.' }, ...failing(401, 403, 404, 409, 429) },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const tenantApi = {
  tag: { name: 'tenants', description: 'Tenants; for admin keys.' },
  routes: tenantRoutes,
  schemas: { Tenant, TenantRequest, TenantPatch },
};
