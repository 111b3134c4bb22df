import { scopes, tiers } from '../model/constants.ts';
import { tenantFields, tierLimit } from './flags.ts';
import { done, list, one } from './output/show.ts';
import * as view from './output/views.ts';
import { type Flag, type Row, row, several, whole } from './rows.ts';

/** The commands of API keys. */
export const keys: readonly Row[] = [
  row('createKey', {
    name: 'keys create',
    text: 'create an API key; it is shown only once',
    flags: [
      { flags: '--name <name>', text: 'what the key is for', required: true },
      { flags: '--tenant-id <id>', text: 'the tenant to create it for (default: your own); needs an admin key' },
      { flags: '--tier <tier>', text: "at most the tenant's tier, which is the default", choices: tiers },
      { flags: '--admin', text: 'create an admin key; needs an admin key' },
      {
        flags: '--scope <scope>',
        text: `what it may do (repeatable; default: all): ${scopes.join(', ')}`,
        field: 'scopes',
        completion: scopes,
        parse: several,
      },
      { flags: '--agent <agent>', text: 'an agent that it may act as (repeatable; default: any)', field: 'agents', parse: several },
      { flags: '--responder <name>', text: 'the person in whose name it answers (default: any)' },
      {
        flags: '--sees <what>',
        text: 'which packets it sees: all, or those of its agents and queues (recommended for agents)',
        choices: ['all', 'own'],
      },
      {
        flags: '--queue <agent>',
        text: 'with --sees own, a target agent whose packets it also sees and claims (repeatable; default: its agents)',
        field: 'queues',
        parse: several,
      },
    ],
    show: view.newKey,
  }),
  row('listKeys', { name: 'keys list', text: 'list the API keys', show: list(view.keyColumns, 'keys') }),
  row('rotateKey', {
    name: 'keys rotate',
    text: 'create a key that replaces this one; it is shown only once',
    flags: [
      {
        flags: '--overlap <seconds>',
        text: 'how long the old key remains valid (default: 3600)',
        field: 'overlap_seconds',
        parse: whole(0, 604_800),
      },
    ],
    show: view.newKey,
  }),
  row('deleteKey', { name: 'keys delete', text: 'revoke an API key immediately', show: done('The key is revoked.') }),
];

const tenantName: Flag = { flags: '--name <name>', text: 'the name of the tenant' };
const tenantOptions: readonly Flag[] = [
  { flags: '--tier <tier>', text: 'its tier', choices: tiers },
  { flags: '--handoffs-per-day <n>', text: "the maximum number of packets per UTC day; tier for the tier's default", parse: tierLimit },
  {
    flags: '--requests-per-hour <n>',
    text: "the maximum number of requests per hour; tier for the tier's default",
    parse: tierLimit,
  },
  { flags: '--max-api-keys <n>', text: 'the maximum number of API keys it may have', parse: whole(0, 100_000) },
];

/** The commands of tenants. */
export const tenants: readonly Row[] = [
  row('listTenants', { name: 'tenants list', text: 'list the tenants', show: list(view.tenantColumns, 'tenants') }),
  row('createTenant', {
    name: 'tenants create',
    text: 'create a tenant',
    flags: [...tenantOptions, { ...tenantName, required: true }],
    prepare: tenantFields,
    show: one(view.tenantLines),
  }),
  row('getTenant', { name: 'tenants get', text: 'show a tenant', show: one(view.tenantLines) }),
  row('patchTenant', {
    name: 'tenants update',
    text: 'change a tenant',
    flags: [...tenantOptions, tenantName],
    prepare: tenantFields,
    show: one(view.tenantLines),
  }),
  row('deleteTenant', {
    name: 'tenants delete',
    text: 'delete a tenant: its data stays, its keys are refused immediately',
    show: done('The tenant is deleted.'),
  }),
  row('listTenantKeys', { name: 'tenants keys', text: "list a tenant's API keys", show: list(view.keyColumns, 'keys') }),
];
