import { deliveryStatuses, webhookEvents } from '../model/constants.ts';
import { answerLinks } from './answer-links.ts';
import { approvals } from './approvals.ts';
import { channels } from './channels.ts';
import { auditFilters, configFile, hookFilter, paged } from './flags.ts';
import { keys, tenants } from './keys.ts';
import { maintenance } from './maintenance.ts';
import { done, json, list, one, shown } from './output/show.ts';
import { tableLines } from './output/table.ts';
import * as view from './output/views.ts';
import { packets } from './packets.ts';
import { type Flag, later, type Row, row, several, whole } from './rows.ts';
import { CliError } from './terminal.ts';

const agentId = { name: 'agent_id', text: 'its id' };
const packetId = [{ name: 'packet_id', text: 'its id' }];
const trail: readonly Row[] = [
  row('packetHistory', {
    name: 'history',
    text: "show a packet's history, oldest first",
    show: shown((body, { out }) => tableLines(view.historyColumns, body.events, out.columns)),
  }),
  row('listAudit', {
    name: 'audit',
    text: "show the tenant's audit log, newest first",
    flags: [...auditFilters, { flags: '--cursor <cursor>', text: 'the next_cursor of the page before, instead of --offset' }, ...paged],
    show: list(view.auditColumns, 'entries'),
  }),
  {
    name: 'audit export',
    text: 'print the audit log with its chain of digests, oldest first',
    operands: [],
    flags: [
      { flags: '--from <position>', text: 'the first position (default: 1)' },
      { flags: '--to <position>', text: 'the last position (default: that of the head)' },
      { flags: '--as <format>', text: 'jsonl (default), or csv for spreadsheets, without digests', choices: ['jsonl', 'csv'] },
      ...auditFilters,
    ],
    run: later(async () => (await import('./audit.ts')).exportAudit),
  },
  {
    name: 'audit verify',
    text: 'check an exported audit log, or those in a database, without a service: every digest, gaps, order, and with a key the signature',
    operands: [{ name: 'file', text: 'a file that audit export or GET /audit/export wrote', optional: true }],
    flags: [
      { flags: '--head <head>', text: 'a head that was kept elsewhere: POSITION:DIGEST, or a file with the answer of GET /audit/head' },
      { flags: '--key <file>', text: 'the public key of the signature, as PEM', completion: 'file' },
      { flags: '--database', text: 'check the audit logs of all tenants in the database of the settings, instead of a file' },
      { flags: '--tenant <id>', text: 'with --database: only this tenant' },
      configFile,
    ],
    run: later(async () => (await import('./audit.ts')).verifyAudit),
  },
  {
    name: 'respond',
    text: "answer a packet's question; without --response it shows the question and prompts for the answer",
    operands: packetId,
    flags: [
      { flags: '--response <text>', text: 'the answer' },
      { flags: '--by, --responded-by <name>', text: 'the person who answers (default: the responder of the key; asked for on a terminal)' },
      { flags: '--notes <text>', text: 'additional remarks' },
    ],
    run: later(async () => (await import('./respond.ts')).respond),
  },
  row('listAgents', {
    name: 'agents',
    text: 'list the agents, most recently seen first, with the packets they hold and that wait for them',
    flags: paged,
    show: list(view.agentColumns, 'agents', { id: 'agent_id' }),
  }),
  {
    name: 'agents contract set',
    text: 'publish what packets for an agent must contain; the service refuses other new ones',
    operands: [agentId, { name: 'file', text: 'a JSON or YAML file with {schema, description, examples}; - reads standard input' }],
    flags: [{ flags: '--if-match <etag>', text: 'change it only if this is still its ETag' }],
    run: later(async () => (await import('./contracts.ts')).setContract),
  },
  row('getContract', { name: 'agents contract get', text: 'show what packets for an agent must contain', show: view.oneContract }),
  row('deleteContract', {
    name: 'agents contract remove',
    text: 'remove the contract of an agent: new packets for it are no longer checked',
    show: done('The contract is removed.'),
  }),
  {
    name: 'agents contract check',
    text: 'say whether a packet would be created or why not, and create nothing',
    operands: [{ name: 'file', text: 'a JSON or YAML file with the packet; - reads standard input' }],
    run: later(async () => (await import('./contracts.ts')).checkPacket),
  },
  row('getStats', {
    name: 'stats',
    text: 'show how many packets wait, are held and ended, by hour',
    flags: [{ flags: '--since <time>', text: 'since this time (ISO 8601; default: a day ago)' }],
    show: shown(view.statsLines),
  }),
];

const events = (text: string): Flag => ({
  flags: '--event <event>',
  text: `an event type to subscribe to (${text}): ${webhookEvents.join(', ')}`,
  field: 'events',
  completion: webhookEvents,
  parse: several,
});

const hooks: readonly Row[] = [
  row('listWebhooks', { name: 'hooks list', text: 'list the webhooks', show: list(view.hookColumns, 'hooks', { none: 'No webhooks.' }) }),
  row('createWebhook', {
    name: 'hooks create',
    text: 'register a webhook',
    flags: [
      { flags: '--url <url>', text: 'where deliveries go: an https URL with a public address', required: true },
      events('repeatable; default: all but packet.overdue and audit.head'),
      {
        flags: '--secret <text>',
        text: 'signs every delivery, at least 16 characters; SERVICE_WEBHOOK_SECRET keeps it out of the process list',
        required: true,
        secret: { what: 'a secret', variable: 'SERVICE_WEBHOOK_SECRET' },
      },
    ],
    show: one(view.hookLines),
  }),
  row('patchWebhook', {
    name: 'hooks update',
    text: 'change a webhook',
    flags: [
      { flags: '--url <url>', text: 'where to send deliveries from now on' },
      events('repeatable; replaces the whole list'),
      {
        flags: '--secret [text]',
        text: 'the new secret (without a value: SERVICE_WEBHOOK_SECRET); the old one remains valid for a day',
        secret: { what: 'a secret', variable: 'SERVICE_WEBHOOK_SECRET' },
      },
      { flags: '--active', text: 'activate it' },
      { flags: '--no-active', text: 'deactivate it' },
    ],
    prepare: (fields) => {
      if (Object.keys(fields).length === 0) throw new CliError('Nothing to change: use --url, --event, --secret, --active or --no-active.');
      return fields;
    },
    show: one(view.hookLines),
  }),
  row('pingWebhook', { name: 'hooks ping', text: 'send a test delivery', show: one(view.deliveryLines) }),
  row('deleteWebhook', { name: 'hooks delete', text: 'remove a webhook', show: done('The webhook is removed.') }),
  row('listDeliveries', {
    name: 'hooks deliveries',
    text: "list a webhook's deliveries, newest first",
    flags: [{ flags: '--status <status>', text: 'only deliveries of this status', choices: deliveryStatuses }, ...paged],
    show: list(view.deliveryColumns, 'deliveries'),
  }),
  row('getDelivery', { name: 'hooks delivery', text: 'show a delivery and what it sends', show: one(view.deliveryDetailLines) }),
  row('listDeadLetters', {
    name: 'hooks dlq',
    text: 'list the dead letters: deliveries that used up their attempts',
    flags: [hookFilter, ...paged],
    show: list(view.deliveryColumns, 'dead letters'),
  }),
  row('replayDeadLetter', { name: 'hooks replay', text: 'send a dead letter again', show: done('The delivery is queued again.') }),
  row('retryAll', {
    name: 'hooks retry-all',
    text: 'retry the failed deliveries and dead letters that are due',
    flags: [
      hookFilter,
      { flags: '--since <time>', text: 'only events at or after this time (ISO 8601)' },
      { flags: '--until <time>', text: 'only events at or before this time (ISO 8601)' },
      { flags: '--force', text: 'include deliveries that are not yet due' },
    ],
    show: shown(({ retried, skipped, remaining }) => [`${retried} retried, ${skipped} skipped (webhook inactive), ${remaining} remaining`]),
  }),
];

const local: readonly Row[] = [
  {
    name: 'approve-hook',
    text: "answer a hook of Claude Code or Codex: ask about the tool call on standard input, wait, and print the hook's decision",
    operands: [],
    flags: [
      { flags: '--agent <id>', text: 'the agent that asks (default: claude-code or codex)' },
      {
        flags: '--only <glob>',
        text: 'ask only about tools with such names, such as mcp__* (repeatable); others are left to the program',
        parse: several,
      },
      {
        flags: '--timeout <seconds>',
        text: 'how long to wait for a decision; below the timeout of the hook',
        parse: whole(1, 86_400),
        value: 590,
      },
      { flags: '--defer', text: 'with PreToolUse: do not wait, but let claude -p end, which asks again when it is resumed' },
    ],
    help: '\nWithout a decision the exit code is 2, at which both programs block the call. See docs/approvals.md.',
    run: later(async () => (await import('./approve-hook.ts')).approveHook),
  },
  {
    name: 'serve',
    text: 'run the service',
    operands: [],
    flags: [
      { flags: '--host <host>', text: 'the address to listen on (default 0.0.0.0)' },
      { flags: '--port <port>', text: 'the port to listen on; 0 picks a free one (default 8080)' },
      configFile,
      { flags: '--reload', text: 'restart whenever a source file changes; for development' },
    ],
    run: later(async () => (await import('./serve.ts')).serve),
  },
  {
    name: 'mcp',
    text: 'serve the tools of the service to an agent (MCP over standard input and output)',
    operands: [],
    flags: [{ flags: '--agent <id>', text: 'the id of the agent; without it each tool asks for agent_id' }],
    run: later(async () => (await import('./mcp.ts')).mcp),
  },
  {
    name: 'admin-key',
    text: 'create an admin key directly in the database of the settings, which must exist, even while the service runs',
    operands: [],
    flags: [configFile],
    run: later(async () => (await import('./serve.ts')).adminKey),
  },
  ...maintenance,
  {
    name: 'open',
    text: "print the address of the service's interactive documentation",
    operands: [],
    run: async ({ config, out }) => out.line(`${(await config()).serverUrl.replace(/\/api\/v1$/, '')}/docs`),
  },
];

const scheduleName = { name: 'name', text: 'its name' };
const schedules: readonly Row[] = [
  row('listSchedules', {
    name: 'schedules list',
    text: 'list the schedules, by name',
    flags: paged,
    show: list(view.scheduleColumns, 'schedules', { none: 'No schedules.', id: 'name' }),
  }),
  row('getSchedule', { name: 'schedules get', text: 'show a schedule', show: json }),
  {
    name: 'schedules set',
    text: 'write a schedule, which makes its packets in the name of your key',
    operands: [scheduleName, { name: 'file', text: 'a JSON or YAML file with {cron, timezone, packet, ...}; - reads standard input' }],
    flags: [{ flags: '--if-match <etag>', text: 'change it only if this is still its ETag' }],
    run: later(async () => (await import('./schedules.ts')).setSchedule),
  },
  row('deleteSchedule', { name: 'schedules remove', text: 'remove a schedule; its packets stay', show: done('The schedule is removed.') }),
  row('runSchedule', { name: 'schedules run', text: 'make the packet of a schedule now', show: view.onePacket }),
  row('nextTimes', {
    name: 'schedules next',
    text: 'show the next times of a schedule',
    flags: [{ flags: '--count <n>', text: 'how many (default: 5)', parse: whole(1, 100) }],
    show: shown(({ times }) => times),
  }),
];

/** Every command, in the order of help. */
export const commands: readonly Row[] = [
  ...packets,
  ...answerLinks,
  ...approvals,
  ...schedules,
  ...trail,
  ...hooks,
  ...channels,
  ...keys,
  ...tenants,
  ...local,
];

/** The groups of commands: the names of their commands without the last word. */
export const groups: Readonly<Record<string, string>> = {
  approvals: 'ask about tool calls, and decide about them',
  policies: 'say who must be asked before an agent calls a tool',
  groups: 'name people together, for policies',
  delegations: 'say who approves in whose place',
  schedules: 'make packets again and again',
  standing: 'list and revoke what people have approved for later',
  'agents contract': 'publish what packets for an agent must contain, and check packets',
  packets: 'create, find and work on packets',
  hooks: 'register webhooks, and retry failed deliveries',
  channels: 'notify people of questions by mail or Slack',
  keys: 'create, list, rotate and revoke API keys',
  tenants: 'manage tenants; needs an admin key',
};
