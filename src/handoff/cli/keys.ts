import { type Command, Option } from 'commander';

import type { Answer } from '../../kit/client.ts';
import type { ApiKey, NewApiKey } from '../model/access.ts';
import { tiers } from '../model/words.ts';
import { act, type Context } from './context.ts';
import { given, whole } from './options.ts';
import { showJson, showList } from './output/show.ts';
import { type Column, pairLines } from './output/table.ts';
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

/** The commands for API keys. */
export function addKeyCommands(program: Command, terminal: Terminal): void {
  const keys = program.command('keys').description('create, list, rotate and revoke API keys');
  const create = keys
    .command('create')
    .description('create an API key; it is shown only once')
    .requiredOption('--name <name>', 'what the key is for')
    .option('--tenant-id <id>', 'the tenant to create it for (default: your own); needs an admin key')
    .addOption(new Option('--tier <tier>', "at most the tenant's tier, which is the default").choices(tiers))
    .option('--admin', 'create an admin key; needs an admin key');
  act<CreateOptions>(create, terminal, createKey);
  act(keys.command('list').description('list the API keys'), terminal, async (context) => {
    const answer = await (await context.client()).listKeys.withResponse();
    showList(context, answer, answer.body, { columns: keyColumns, none: 'No keys.' });
  });
  const rotate = keys
    .command('rotate')
    .description('create a key that replaces this one; it is shown only once')
    .argument('<key_id>', 'its id')
    .addOption(new Option('--overlap <seconds>', 'how long the old key remains valid (default: 3600)').argParser(whole(0, 604_800)));
  act<{ overlap?: number }>(rotate, terminal, async (context, { overlap }, id) => {
    const body = given({ overlap_seconds: overlap });
    showNewKey(context, await (await context.client()).rotateKey.withResponse({ params: { id }, body }));
  });
  const remove = keys.command('delete').description('revoke an API key immediately').argument('<key_id>', 'its id');
  act(remove, terminal, async (context, _, id) => {
    await (await context.client()).deleteKey({ params: { id } });
    context.say('The key is revoked.');
  });
}

async function createKey(context: Context, { name, tier, tenantId, admin }: CreateOptions): Promise<void> {
  const body = given({ name, tier, tenant_id: tenantId, admin });
  showNewKey(context, await (await context.client()).createKey.withResponse({ body }));
}

function showNewKey(context: Context, answer: Answer<NewApiKey>): void {
  const { id, key, name, tier } = answer.body;
  const lines = pairLines([
    ['Key', key],
    ['ID', id],
    ['Name', name],
    ['Tier', tier],
  ]);
  if (context.format === 'json') showJson(context, answer);
  else for (const line of context.quiet ? [key] : lines) context.print(line);
  if (context.format !== 'json') context.say('Store the key now: it is not shown again.');
}
