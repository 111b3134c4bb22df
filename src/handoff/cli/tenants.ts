import { type Command, InvalidArgumentError, Option } from 'commander';

import type { Tenant } from '../model/access.ts';
import { tiers } from '../model/words.ts';
import { act, type Context } from './context.ts';
import { keyColumns } from './keys.ts';
import { given, whole } from './options.ts';
import { showList, showOne } from './output/show.ts';
import { type Column, pairLines } from './output/table.ts';
import type { Terminal } from './terminal.ts';

const columns: readonly Column<Tenant>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'NAME', value: ({ name }) => name, least: 8 },
  { title: 'TIER', value: ({ tier }) => tier },
  { title: 'PER DAY', value: ({ handoffs_per_day }) => handoffs_per_day ?? 'by tier' },
  { title: 'KEYS', value: ({ max_api_keys }) => max_api_keys },
  { title: 'CREATED', value: ({ created_at }) => created_at },
];

const lines = (tenant: Tenant) =>
  pairLines([
    ['ID', tenant.id],
    ['Name', tenant.name],
    ['Tier', tenant.tier],
    ['Packets per day', tenant.handoffs_per_day ?? 'by tier'],
    ['API keys', `at most ${tenant.max_api_keys}`],
    ['Created', tenant.created_at],
    ['Updated', tenant.updated_at],
  ]);

interface TenantOptions {
  name?: string;
  tier?: 'free';
  handoffsPerDay?: string;
  maxApiKeys?: number;
}

/** The commands for tenants; all of them need an admin key. */
export function addTenantCommands(program: Command, terminal: Terminal): void {
  const tenants = program.command('tenants').description('manage tenants; needs an admin key');
  act(tenants.command('list').description('list the tenants'), terminal, async (context) => {
    const answer = await (await context.client()).listTenants.withResponse();
    showList(context, answer, answer.body, { columns, none: 'No tenants.' });
  });
  const create = options(tenants.command('create').description('create a tenant')).requiredOption(
    '--name <name>',
    'the name of the tenant',
  );
  act<TenantOptions & { name: string }>(create, terminal, async (context, given) => {
    const body = { ...bodyOf(given), name: given.name };
    showOne(context, await (await context.client()).createTenant.withResponse({ body }), lines);
  });
  one(tenants, 'get', 'show a tenant', terminal, async (context, id) => {
    showOne(context, await (await context.client()).getTenant.withResponse({ params: { id } }), lines);
  });
  const update = options(tenants.command('update').description('change a tenant').argument('<tenant_id>', 'its id'));
  act<TenantOptions>(update.option('--name <name>', 'the name of the tenant'), terminal, async (context, given, id) => {
    showOne(context, await (await context.client()).patchTenant.withResponse({ params: { id }, body: bodyOf(given) }), lines);
  });
  one(tenants, 'delete', 'delete a tenant: its data stays, its keys are refused immediately', terminal, async (context, id) => {
    await (await context.client()).deleteTenant({ params: { id } });
    context.say('The tenant is deleted.');
  });
  one(tenants, 'keys', "list a tenant's API keys", terminal, async (context, id) => {
    const answer = await (await context.client()).listTenantKeys.withResponse({ params: { id } });
    showList(context, answer, answer.body, { columns: keyColumns, none: 'No keys.' });
  });
}

function one(tenants: Command, name: string, text: string, terminal: Terminal, run: (context: Context, id: string) => Promise<void>): void {
  act(tenants.command(name).description(text).argument('<tenant_id>', 'its id'), terminal, (context, _, id) => run(context, id));
}

function options(command: Command): Command {
  return command
    .addOption(new Option('--tier <tier>', 'its tier').choices(tiers))
    .addOption(new Option('--handoffs-per-day <n>', "the most packets per UTC day; tier for the tier's default").argParser(perDay))
    .addOption(new Option('--max-api-keys <n>', 'the most API keys it may have').argParser(whole(0, 100_000)));
}

function perDay(text: string): string {
  if (text !== 'tier' && !/^\d{1,10}$/.test(text)) throw new InvalidArgumentError('It must be a whole number, or tier.');
  return text;
}

function bodyOf({ name, tier, handoffsPerDay, maxApiKeys }: TenantOptions) {
  const cap = handoffsPerDay === undefined ? undefined : handoffsPerDay === 'tier' ? null : Number(handoffsPerDay);
  return given({ name, tier, handoffs_per_day: cap, max_api_keys: maxApiKeys });
}
