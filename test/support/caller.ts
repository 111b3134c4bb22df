import type { Caller } from '../../src/handoff/service/authentication.ts';
import { defaultTenantId } from '../../src/handoff/service/keys.ts';

/** An admin key of the first tenant, for calls of services without HTTP. */
export const adminCaller: Caller = {
  kind: 'key',
  key_id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b',
  origin: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b',
  tier: 'business',
  admin: true,
  tenant_id: defaultTenantId,
  tenant_number: 1,
  tenant_tier: 'business',
  handoffs_per_day: null,
  requests_per_hour: null,
  name: 'test',
  lineage: [],
};
