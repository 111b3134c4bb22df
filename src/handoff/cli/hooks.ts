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

/** The commands for webhooks and their deliveries. */
export function addHookCommands(program: Command, terminal: Terminal): void {
  const hooks = program.command('hooks').description('register webhooks, and retry failed deliveries');
  act(hooks.command('list').description('list the webhooks'), terminal, async (context) => {
    const answer = await (await context.client()).listWebhooks.withResponse();
    showList(context, answer, answer.body, { columns: hookColumns, none: 'No webhooks.' });
  });
  const create = hooks
    .command('create')
    .description('register a webhook')
    .requiredOption('--url <url>', 'where deliveries go: an https URL with a public address')
    .option('--event <event>', `an event type to subscribe to (repeatable; default: all): ${webhookEvents.join(', ')}`, several)
    .option('--secret <text>', 'signs every delivery, at least 16 characters; SERVICE_WEBHOOK_SECRET keeps it out of the process list');
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
    .option('--url <url>', 'where to send deliveries from now on')
    .option('--event <event>', `an event type to subscribe to (repeatable; replaces the whole list): ${webhookEvents.join(', ')}`, several)
    .option('--secret [text]', 'the new secret (without a value: SERVICE_WEBHOOK_SECRET); the old one remains valid for a day')
    .option('--active', 'activate it')
    .option('--no-active', 'deactivate it');
  act<UpdateOptions>(update, terminal, updateHook);
}

async function updateHook(context: Context, { url, event, secret, active }: UpdateOptions, id: string): Promise<void> {
  const inEnvironment = context.terminal.environment.SERVICE_WEBHOOK_SECRET;
  if (secret === true && inEnvironment === undefined) throw new CliError('--secret without a value needs SERVICE_WEBHOOK_SECRET.');
  const body = given({ url, events: event, secret: secret === true ? inEnvironment : secret, active });
  if (Object.keys(body).length === 0) throw new CliError('Nothing to change: use --url, --event, --secret, --active or --no-active.');
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
    .description('list the dead letters: deliveries that used up their attempts')
    .option('--hook <hook_id>', 'only deliveries to this webhook');
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
    else context.say('The delivery is queued again.');
  });
  const all = hooks
    .command('retry-all')
    .description('retry the failed deliveries and dead letters that are due')
    .option('--hook <hook_id>', 'only deliveries to this webhook')
    .option('--since <time>', 'only events at or after this time (ISO 8601)')
    .option('--until <time>', 'only events at or before this time (ISO 8601)')
    .option('--force', 'include deliveries that are not yet due');
  act<{ hook?: string; since?: string; until?: string; force?: true }>(all, terminal, retryAll);
}

async function retryAll(
  context: Context,
  { hook, since, until, force }: { hook?: string; since?: string; until?: string; force?: true },
): Promise<void> {
  const answer = await (await context.client()).retryAll.withResponse({ body: given({ webhook_id: hook, since, until, force }) });
  if (context.format === 'json') return showJson(context, answer);
  const { retried, skipped, remaining } = answer.body;
  context.print(`${retried} retried, ${skipped} skipped (webhook inactive), ${remaining} remaining`);
}
