import { type Command, Option } from 'commander';

import type { ApiKey } from '../model/access.ts';
import { tiers } from '../model/words.ts';
import { act, type Context } from './context.ts';
import { showJson, showList } from './output/show.ts';
import { type Column, pairLines } from './output/table.ts';
import { given } from './packets.ts';
import type { Terminal } from './terminal.ts';

/** The columns of a list of keys. */
export const keyColumns: readonly Column<ApiKey>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'NAME', value: ({ name }) => name, least: 8 },
  { title: 'TIER', value: ({ tier }) => tier },
  { title: 'PREFIX', value: ({ prefix }) => prefix },
  { title: 'ADMIN', value: ({ admin }) => (admin ? 'yes' : 'no') },
  { title: 'CREATED', value: ({ created_at }) => created_at },
];

interface CreateOptions {
  name: string;
  tier?: 'free';
  tenantId?: string;
  admin?: true;
}

/** The commands of API keys. */
export function addKeyCommands(program: Command, terminal: Terminal): void {
  const keys = program.command('keys').description('create, list and revoke API keys');
  const create = keys
    .command('create')
    .description('create an API key; it is shown only then')
    .requiredOption('--name <name>', 'what the key is for')
    .option('--tenant-id <id>', "another tenant's; needs an admin key")
    .addOption(new Option('--tier <tier>', "not above the tenant's (default: the tenant's)").choices(tiers))
    .option('--admin', 'an admin key; needs an admin key');
  act<CreateOptions>(create, terminal, createKey);
  act(keys.command('list').description('list the API keys'), terminal, async (context) => {
    const answer = await (await context.client()).listKeys.withResponse();
    showList(context, answer, answer.body, { columns: keyColumns, none: 'No keys.' });
  });
  const remove = keys.command('delete').description('revoke an API key at once').argument('<key_id>', 'its id');
  act(remove, terminal, async (context, _, id) => {
    await (await context.client()).deleteKey({ params: { id } });
    context.say('The key is revoked.');
  });
}

async function createKey(context: Context, { name, tier, tenantId, admin }: CreateOptions): Promise<void> {
  const body = given({ name, tier, tenant_id: tenantId, admin });
  const answer = await (await context.client()).createKey.withResponse({ body });
  if (context.format === 'json') return showJson(context, answer);
  if (context.quiet) return context.print(answer.body.key);
  const { id, key } = answer.body;
  for (const line of pairLines([
    ['Key', key],
    ['ID', id],
    ['Name', answer.body.name],
    ['Tier', answer.body.tier],
  ]))
    context.print(line);
  context.say('The key is shown only now.');
}
