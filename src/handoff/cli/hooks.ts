import { type Command, Option } from 'commander';

import type { Delivery, Webhook } from '../model/webhook.ts';
import { deliveryStatuses, webhookEvents } from '../model/words.ts';
import { act, type Context } from './context.ts';
import { given, paged, several } from './options.ts';
import { sayNextPage, showJson, showList, showOne } from './output/show.ts';
import { type Column, pairLines } from './output/table.ts';
import { CliError, type Terminal } from './terminal.ts';

const hookColumns: readonly Column<Webhook>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'ACTIVE', value: ({ active, disabled_reason }) => (active ? 'yes' : (disabled_reason ?? 'no')) },
  { title: 'URL', value: ({ url }) => url, least: 16 },
  { title: 'EVENTS', value: ({ events }) => events.join(','), least: 8 },
  { title: 'CREATED', value: ({ created_at }) => created_at },
];

const deliveryColumns: readonly Column<Delivery>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'STATUS', value: ({ status }) => status },
  { title: 'EVENT', value: ({ event_type }) => event_type },
  { title: 'TRIES', value: ({ attempts }) => attempts },
  { title: 'ERROR', value: ({ last_error, last_status_code }) => last_status_code ?? last_error },
  { title: 'NEXT TRY', value: ({ next_retry_at }) => next_retry_at },
  { title: 'PACKET', value: ({ packet_id }) => packet_id },
];

const hookLines = (hook: Webhook) =>
  pairLines([
    ['ID', hook.id],
    ['URL', hook.url],
    ['Active', hook.active ? 'yes' : `no ${hook.disabled_reason ?? ''}`],
    ['Events', hook.events.join(', ')],
    ['Created', hook.created_at],
  ]);

const deliveryLines = (delivery: Delivery) =>
  pairLines([
    ['ID', delivery.id],
    ['Webhook', delivery.webhook_id],
    ['Event', delivery.event_type],
    ['Status', delivery.status],
    ['Created', delivery.created_at],
  ]);

interface Page {
  limit: number;
  offset: number;
}

/** The commands of webhooks and their deliveries. */
export function addHookCommands(program: Command, terminal: Terminal): void {
  const hooks = program.command('hooks').description('register webhooks, and see to what could not be delivered');
  act(hooks.command('list').description('list the webhooks'), terminal, async (context) => {
    const answer = await (await context.client()).listWebhooks.withResponse();
    showList(context, answer, answer.body, { columns: hookColumns, none: 'No webhooks.' });
  });
  const create = hooks
    .command('create')
    .description('register a webhook')
    .requiredOption('--url <url>', 'where deliveries go: https, and a public address')
    .option('--event <event>', `what to be told of (repeatable; default: all): ${webhookEvents.join(', ')}`, several)
    .option('--secret <text>', 'signs every delivery, 16 characters or more; SERVICE_WEBHOOK_SECRET keeps it out of the list of processes');
  act<CreateOptions>(create, terminal, createHook);
  addUpdateCommand(hooks, terminal);
  act(hooks.command('ping').description('send a test delivery').argument('<hook_id>', 'its id'), terminal, async (context, _, id) => {
    showOne(context, await (await context.client()).pingWebhook.withResponse({ params: { id } }), deliveryLines);
  });
  act(hooks.command('delete').description('remove a webhook').argument('<hook_id>', 'its id'), terminal, async (context, _, id) => {
    await (await context.client()).deleteWebhook({ params: { id } });
    context.say('The webhook is removed.');
  });
  addDeliveryCommands(hooks, terminal);
}

interface CreateOptions {
  url: string;
  event?: (typeof webhookEvents)[number][];
  secret?: string;
}

async function createHook(
  context: Context,
  { url, event, secret = context.terminal.environment.SERVICE_WEBHOOK_SECRET }: CreateOptions,
): Promise<void> {
  if (secret === undefined) throw new CliError('A webhook needs a secret: --secret, or SERVICE_WEBHOOK_SECRET.');
  const body = given({ url, events: event, secret });
  showOne(context, await (await context.client()).createWebhook.withResponse({ body }), hookLines);
}

interface UpdateOptions {
  url?: string;
  event?: (typeof webhookEvents)[number][];
  secret?: string | true;
  active?: boolean;
}

function addUpdateCommand(hooks: Command, terminal: Terminal): void {
  const update = hooks
    .command('update')
    .description('change a webhook')
    .argument('<hook_id>', 'its id')
    .option('--url <url>', 'where deliveries go from now on')
    .option('--event <event>', `what to be told of (repeatable; takes the place of all): ${webhookEvents.join(', ')}`, several)
    .option('--secret [text]', 'the new secret, by itself that of SERVICE_WEBHOOK_SECRET; the old one signs beside it for a day')
    .option('--active', 'switch it on again')
    .option('--no-active', 'switch it off');
  act<UpdateOptions>(update, terminal, updateHook);
}

async function updateHook(context: Context, { url, event, secret, active }: UpdateOptions, id: string): Promise<void> {
  const inEnvironment = context.terminal.environment.SERVICE_WEBHOOK_SECRET;
  if (secret === true && inEnvironment === undefined) throw new CliError('--secret by itself needs SERVICE_WEBHOOK_SECRET.');
  const body = given({ url, events: event, secret: secret === true ? inEnvironment : secret, active });
  if (Object.keys(body).length === 0) throw new CliError('Say what to change: --url, --event, --secret, --active or --no-active.');
  showOne(context, await (await context.client()).patchWebhook.withResponse({ params: { id }, body }), hookLines);
}

function addDeliveryCommands(hooks: Command, terminal: Terminal): void {
  const deliveries = hooks
    .command('deliveries')
    .description("list a webhook's deliveries, newest first")
    .argument('<hook_id>', 'its id')
    .addOption(new Option('--status <status>', 'only deliveries of this status').choices(deliveryStatuses));
  act<Page & { status?: Delivery['status'] }>(paged(deliveries), terminal, async (context, { status, limit, offset }, id) => {
    const query = given({ status, limit, offset });
    const answer = await (await context.client()).listDeliveries.withResponse({ params: { id }, query });
    showList(context, answer, answer.body, { columns: deliveryColumns, none: 'No deliveries.' });
    sayNextPage(context, answer.body.length, { total: Number(answer.headers['x-total-count']), offset, noun: 'deliveries' });
  });
  const dlq = hooks
    .command('dlq')
    .description('list the deliveries that have failed for good')
    .option('--hook <hook_id>', 'only of this webhook');
  act<Page & { hook?: string }>(paged(dlq), terminal, async (context, { hook, limit, offset }) => {
    const query = given({ webhook_id: hook, limit, offset });
    const answer = await (await context.client()).listDeadLetters.withResponse({ query });
    showList(context, answer, answer.body, { columns: deliveryColumns, none: 'No dead letters.' });
    sayNextPage(context, answer.body.length, { total: Number(answer.headers['x-total-count']), offset, noun: 'dead letters' });
  });
  const replay = hooks.command('replay').description('send a dead letter again').argument('<delivery_id>', 'its id');
  act(replay, terminal, async (context, _, delivery_id) => {
    const answer = await (await context.client()).replayDeadLetter.withResponse({ params: { delivery_id } });
    if (context.format === 'json') showJson(context, answer);
    else context.say('It is sent again.');
  });
  const all = hooks
    .command('retry-all')
    .description('send again what failed and is due')
    .option('--hook <hook_id>', 'only of this webhook')
    .option('--since <time>', 'only events at or after this time (ISO 8601)')
    .option('--until <time>', 'only events at or before this time (ISO 8601)')
    .option('--force', 'what is not yet due as well');
  act<{ hook?: string; since?: string; until?: string; force?: true }>(all, terminal, retryAll);
}

async function retryAll(
  context: Context,
  { hook, since, until, force }: { hook?: string; since?: string; until?: string; force?: true },
): Promise<void> {
  const answer = await (await context.client()).retryAll.withResponse({ body: given({ webhook_id: hook, since, until, force }) });
  if (context.format === 'json') return showJson(context, answer);
  const { retried, skipped, remaining } = answer.body;
  context.print(`${retried} sent again, ${skipped} skipped (webhook inactive), ${remaining} remaining`);
}
